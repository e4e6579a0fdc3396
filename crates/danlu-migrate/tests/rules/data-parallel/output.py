import torch
import torch_npu  # noqa: F401
import torch.nn as nn

model = nn.DataParallel(nn.Linear(1, 1)).npu()
isinstance(model, nn.DataParallel)
