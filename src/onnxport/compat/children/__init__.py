"""A folder for `PYTHONPATH`: Python processes that find it there use onnxport as their `torch.onnx`."""
