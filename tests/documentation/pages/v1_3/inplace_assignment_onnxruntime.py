# onnxruntime
import onnxruntime
sess = onnxruntime.InferenceSession('inplace_assign.onnx')
out_ort = sess.run(None, {
    sess.get_inputs()[0].name: torch.zeros(3, 4).numpy(),
    sess.get_inputs()[1].name: index.numpy(),
    sess.get_inputs()[2].name: new_data.numpy(),
})

assert torch.all(torch.eq(out, torch.tensor(out_ort)))
