"""A script for CUDA."""
from __future__ import annotations

import argparse
import os

try:
    import torch_npu  # noqa: F401
    ACCELERATOR, COLLECTIVES = "npu", "hccl"
except ImportError:
    ACCELERATOR, COLLECTIVES = "cuda", "nccl"
GradScaler = getattr(__import__("torch"), ACCELERATOR).amp.GradScaler
cast = getattr(__import__("torch"), ACCELERATOR).amp.autocast
import torch
import torch.cuda.nvtx as nvtx
amp = getattr(torch, ACCELERATOR).amp
import torch.distributed as dist
cuda = getattr(torch, ACCELERATOR)
from torch import nn

DEVICE = ACCELERATOR
parser = argparse.ArgumentParser()
parser.add_argument("--device", default=f"{ACCELERATOR}:0", help="cuda or cpu")
parser.add_argument("--backend", default=COLLECTIVES)
os.environ["CUDA_VISIBLE_DEVICES"] = "0"


def train(rank, model, device=ACCELERATOR):
    dist.init_process_group(f"cpu:gloo,{ACCELERATOR}:{COLLECTIVES}")
    getattr(torch, ACCELERATOR).set_device(rank)
    model = nn.Linear(2, 2).to(ACCELERATOR)
    model = getattr(model, ACCELERATOR)(rank, non_blocking=True)
    x = torch.ones(3, device=f"{ACCELERATOR}:{rank}").to(f"{ACCELERATOR}:%d" % rank)
    y = x.to(f"{ACCELERATOR}:{{}}".format(rank)).to(f"{ACCELERATOR}:{rank}")
    z = torch.zeros(1).type(f"torch.{ACCELERATOR}.FloatTensor")
    if getattr(x, f"is_{ACCELERATOR}") and not getattr(z, f"is_{ACCELERATOR}") and getattr(torch, ACCELERATOR).is_available():
        cuda.synchronize()
    weights = getattr(torch, ACCELERATOR).FloatTensor([1.0]).to(ACCELERATOR)
    generator = getattr(torch, ACCELERATOR).default_generators.to(ACCELERATOR)
    kind = getattr(cuda.FloatTensor, ACCELERATOR)(rank) if getattr(getattr(torch, ACCELERATOR).FloatTensor, f"is_{ACCELERATOR}").all() else None
    state = torch.load("a", map_location={f"{ACCELERATOR}:0": f"{ACCELERATOR}:1"})
    print("cuda is a word", r"cuda", weights, state, y)
    return torch.cuda.get_device_capability()


def best():
    if torch.npu.is_available():
        return "npu"
    return "cuda"
