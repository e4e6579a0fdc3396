# -*- coding: utf-8 -*-
"""torch.cuda in a docstring is prose."""
import importlib
import torch as t
import torch_npu  # noqa: F401
import torch
import torch_npu.npu.amp as amp
from torch_npu.npu import amp as a, Event
from torch_npu.npu.amp import autocast, GradScaler  # mixed precision
from torch_npu import npu as cuda
from torch_npu import npu as gpu
from torch import nn
from compat import t as tt, mixed
import compat
import numba.cuda

if t.npu.is_available() and torch.npu.device_count() > 1:  # torch.cuda here is prose, too
    t.npu.set_device(0)
cuda.empty_cache()
gpu.synchronize()
tt.npu.synchronize()
compat.t.npu.synchronize()
compat.mixed.autocast()
module = getattr(t, "npu")
module.synchronize()
other = importlib.import_module("torch_npu.npu")
alias = torch.npu
alias.memory_allocated()
stream = torch . npu . Stream()
total = (torch
         .npu  # kept
         .max_memory_allocated())
numba.cuda.jit(lambda x: x)
torch.cuda.nvtx.range_push("step")
torch.cuda.get_device_capability()
with torch.npu.amp.autocast(enabled=True), torch.npu.stream(stream):
    scaler = torch.npu.amp.GradScaler()


def shadowed(torch):
    return torch.cuda.is_available()


class Settings:
    cuda = True


print(Settings.cuda)
if hasattr(torch, "npu") and hasattr(Settings, "cuda"):
    getattr(torch, 'npu').synchronize()

BY_TYPE = {"cpu": None, "npu": torch.npu.device_count, "xpu": torch.xpu.device_count}
BACKENDS = {"cpu": "gloo", "npu": "hccl"}
IS_AMD = torch.version.hip is not None and torch.cuda.is_available()
if device_type in ["cuda", "rocm"]:
    pass
