import torch
import torch_npu  # noqa: F401


def same(x, y):
    if x.is_npu and not y.is_npu:
        y = y.to(x.device)
    return y
