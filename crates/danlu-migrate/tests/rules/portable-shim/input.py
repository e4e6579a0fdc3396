import torch

x = torch.ones(3, device="cuda")
