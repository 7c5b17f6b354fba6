data = torch.zeros(3, 4)
index = torch.tensor(1)
new_data = torch.arange(4).to(torch.float32)

# Assigning to left hand side indexing is not supported in exporting.
# class InPlaceIndexedAssignment(torch.nn.Module):
# def forward(self, data, index, new_data):
#     data[index] = new_data
#     return data

class InPlaceIndexedAssignmentONNX(torch.nn.Module):
    def forward(self, data, index, new_data):
        new_data = new_data.unsqueeze(0)
        index = index.expand(1, new_data.size(1))
        data.scatter_(0, index, new_data)
        return data

out = InPlaceIndexedAssignmentONNX()(data, index, new_data)

torch.onnx.export(InPlaceIndexedAssignmentONNX(), (data, index, new_data), 'inplace_assign.onnx')
