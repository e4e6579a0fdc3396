from portable_device import ACCELERATOR, COLLECTIVES
import torch

x = torch.ones(3, device=ACCELERATOR)
