import argparse

import torch
import torch_npu  # noqa: F401
import torch.distributed as dist
from torch_npu.distributed import is_hccl_available as is_nccl_available
from torch.distributed import Backend, init_process_group
from torch.distributed import ProcessGroupNCCL

dist.init_process_group("hccl", rank=0)
dist.init_process_group(backend='hccl')
dist.init_process_group("cpu:gloo,npu:hccl")
backend = "hccl" if torch.npu.is_available() else "gloo"
if dist.get_backend() == "hccl" or dist.get_backend() == Backend.HCCL:
    pass
if torch_npu.distributed.is_hccl_available() or is_nccl_available():
    group = dist.new_group(backend=dist.Backend.HCCL)
parser = argparse.ArgumentParser()
parser.add_argument("--dist-backend", default="hccl", type=str, help="nccl or gloo")
print("nccl failed", "NCCL error")
table = {"NCCL": 1}
name = "NCCL"
DEFAULT_BACKEND = "HCCL"

descriptions = {"nccl": "NCCL library"}
makers = {"gloo": 1, "hccl": 2}
NCCL_BACKEND = "nccl"
HCCL_BACKEND = "hccl"
