# -*- coding: utf-8 -*-
"""torch.cuda in a docstring is prose."""
import importlib
import torch as t
import torch.cuda
import torch.cuda.amp as amp
from torch.cuda import amp as a, Event
from torch.cuda.amp import autocast, GradScaler  # mixed precision
from torch import cuda
from torch import nn, cuda as gpu
from compat import t as tt, mixed
import compat
import numba.cuda

if t.cuda.is_available() and torch.cuda.device_count() > 1:  # torch.cuda here is prose, too
    t.cuda.set_device(0)
cuda.empty_cache()
gpu.synchronize()
tt.cuda.synchronize()
compat.t.cuda.synchronize()
compat.mixed.autocast()
module = getattr(t, "cuda")
module.synchronize()
other = importlib.import_module("torch.cuda")
alias = torch.cuda
alias.memory_allocated()
stream = torch . cuda . Stream()
total = (torch
         .cuda  # kept
         .max_memory_allocated())
numba.cuda.jit(lambda x: x)
torch.cuda.nvtx.range_push("step")
torch.cuda.get_device_capability()
with torch.cuda.amp.autocast(enabled=True), torch.cuda.stream(stream):
    scaler = torch.cuda.amp.GradScaler()


def shadowed(torch):
    return torch.cuda.is_available()


class Settings:
    cuda = True


print(Settings.cuda)
if hasattr(torch, "cuda") and hasattr(Settings, "cuda"):
    getattr(torch, 'cuda').synchronize()

BY_TYPE = {"cpu": None, "cuda": torch.cuda.device_count, "xpu": torch.xpu.device_count}
BACKENDS = {"cpu": "gloo", "cuda": "nccl"}
IS_AMD = torch.version.hip is not None and torch.cuda.is_available()
if device_type in ["cuda", "rocm"]:
    pass
