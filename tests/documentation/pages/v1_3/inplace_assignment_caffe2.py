# caffe2
import caffe2.python.onnx.backend as backend
import onnx

onnx_model = onnx.load('inplace_assign.onnx')
rep = backend.prepare(onnx_model)
out_caffe2 = rep.run((torch.zeros(3, 4).numpy(), index.numpy(), new_data.numpy()))

assert torch.all(torch.eq(out, torch.tensor(out_caffe2)))
