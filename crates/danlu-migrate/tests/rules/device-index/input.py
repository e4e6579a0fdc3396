import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
model = torch.nn.Linear(1, 1).to(rank)
model.to(0, non_blocking=True)
model.to(device=1)
model.to(dtype=torch.float16, copy=True)
x = torch.ones(3, device=rank)
x = x.new_zeros(3, device=0)
place = torch.device(0)
place = torch.device("cuda", 0)
x.to(torch.float16)
x.to(compute())
world = dist.get_rank()
x.to(world)


class Wrapped(torch.nn.Module):
    def to(self, *args, **kwargs):
        return super().to(*args, **kwargs)


def worker(rank, gpu, flag: int, other):
    x.to(rank)
    x.to(gpu)
    x.to(flag)
    x.to(other)
    x.to(rank + 1)


def spawned(args):
    x.to(args.local_rank)


x.to(torch.cuda.current_device())
torch.ones(1, device=torch.cuda.current_device())

parser.add_argument("--gpu", type=int, default=0)
x.to(args.gpu)
torch.zeros(3, device=args.gpu)
parser.add_argument("--maybe-gpu", type=int)
x.to(args.maybe_gpu)
