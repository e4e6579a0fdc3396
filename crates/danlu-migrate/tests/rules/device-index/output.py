import os

import torch
import torch_npu  # noqa: F401
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
model = torch.nn.Linear(1, 1).to(f"npu:{rank}")
model.to("npu:0", non_blocking=True)
model.to(device="npu:1")
model.to(dtype=torch.float16, copy=True)
x = torch.ones(3, device=f"npu:{rank}")
x = x.new_zeros(3, device="npu:0")
place = torch.device("npu:0")
place = torch.device("npu", 0)
x.to(torch.float16)
x.to(compute())
world = dist.get_rank()
x.to(f"npu:{world}")


class Wrapped(torch.nn.Module):
    def to(self, *args, **kwargs):
        return super().to(*args, **kwargs)


def worker(rank, gpu, flag: int, other):
    x.to(f"npu:{rank}")
    x.to(gpu)
    x.to(f"npu:{flag}")
    x.to(other)
    x.to(rank + 1)


def spawned(args):
    x.to(f"npu:{args.local_rank}")


x.to("npu")
torch.ones(1, device="npu")

parser.add_argument("--gpu", type=int, default=0)
x.to(f"npu:{args.gpu}")
torch.zeros(3, device=f"npu:{args.gpu}")
parser.add_argument("--maybe-gpu", type=int)
x.to(args.maybe_gpu)
