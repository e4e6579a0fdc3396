import torch as t
from torch.cuda import amp as mixed
