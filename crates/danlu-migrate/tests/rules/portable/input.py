"""A script for CUDA."""
from __future__ import annotations

import argparse
import os

from torch.cuda.amp import GradScaler, autocast as cast
import torch
import torch.cuda.nvtx as nvtx
import torch.cuda.amp as amp
import torch.distributed as dist
from torch import nn, cuda

DEVICE = "cuda"
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda:0", help="cuda or cpu")
parser.add_argument("--backend", default="nccl")
os.environ["CUDA_VISIBLE_DEVICES"] = "0"


def train(rank, model, device="cuda"):
    dist.init_process_group("cpu:gloo,cuda:nccl")
    torch.cuda.set_device(rank)
    model = nn.Linear(2, 2).cuda()
    model = model.cuda(rank, non_blocking=True)
    x = torch.ones(3, device=f"cuda:{rank}").to("cuda:%d" % rank)
    y = x.to("cuda:{}".format(rank)).to(rank)
    z = torch.zeros(1).type("torch.cuda.FloatTensor")
    if x.is_cuda and not z.is_cuda and torch.cuda.is_available():
        cuda.synchronize()
    weights = torch.cuda.FloatTensor([1.0]).cuda()
    generator = torch.cuda.default_generators.cuda()
    kind = cuda.FloatTensor.cuda(rank) if torch.cuda.FloatTensor.is_cuda.all() else None
    state = torch.load("a", map_location={"cuda:0": "cuda:1"})
    print("cuda is a word", r"cuda", weights, state, y)
    return torch.cuda.get_device_capability()


def best():
    if torch.npu.is_available():
        return "npu"
    return "cuda"
