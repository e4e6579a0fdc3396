import torch
import torch.nn as nn

model = nn.DataParallel(nn.Linear(1, 1)).cuda()
isinstance(model, nn.DataParallel)
