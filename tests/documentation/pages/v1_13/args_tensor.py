args = torch.Tensor([1])
