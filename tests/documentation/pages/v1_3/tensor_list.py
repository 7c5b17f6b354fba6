x = torch.tensor([[1., 2., 3.], [4., 5., 6.], [7., 8., 9.]])

# This is not exportable
class Model(torch.nn.Module):
    def forward(self, x):
        return x.unbind(0)

# This is exportable.
# Note that in this example we know the split operator will always produce exactly three outputs,
# Thus we can export to ONNX without using tensor list.
class AnotherModel(torch.nn.Module):
    def forward(self, x):
        return [torch.squeeze(out, 0) for out in torch.split(x, [1,1,1], dim=0)]
