import torch
from compat import triton


@triton.jit
def kernel(x):
    pass


def check(x):
    if x.device.type != "cuda":
        raise RuntimeError("rows have to be on the device")
    return x


def prepare(x):
    if not torch.cuda.is_available():
        return x
    return x.cuda()
