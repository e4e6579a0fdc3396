import argparse

import torch
import torch.distributed as dist
from torch.distributed import Backend, is_nccl_available, init_process_group
from torch.distributed import ProcessGroupNCCL

dist.init_process_group("nccl", rank=0)
dist.init_process_group(backend='nccl')
dist.init_process_group("cpu:gloo,cuda:nccl")
backend = "nccl" if torch.cuda.is_available() else "gloo"
if dist.get_backend() == "nccl" or dist.get_backend() == Backend.NCCL:
    pass
if dist.is_nccl_available() or is_nccl_available():
    group = dist.new_group(backend=dist.Backend.NCCL)
parser = argparse.ArgumentParser()
parser.add_argument("--dist-backend", default="nccl", type=str, help="nccl or gloo")
print("nccl failed", "NCCL error")
table = {"NCCL": 1}
name = "NCCL"
DEFAULT_BACKEND = "NCCL"

descriptions = {"nccl": "NCCL library"}
makers = {"gloo": 1, "nccl": 2}
NCCL_BACKEND = "nccl"
HCCL_BACKEND = "hccl"
