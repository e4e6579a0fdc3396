import torch
import torch_npu  # noqa: F401
from models import network

network.npu()
x = torch.ones(2).npu()
y = x.npu(0, non_blocking=True)
z = [t.npu(device=i) for i, t in enumerate([x, y])]
storage = torch.load("a.pt", map_location=lambda s, loc: s.npu(1))
to_device = torch.Tensor.npu
move = x.cuda
args = object()
if args.cuda:
    x = x.npu()
args.cuda = args.cuda and torch.npu.is_available()
print(torch.version.cuda)


class Holder(torch.nn.Module):
    def npu(self, device=None):
        self.extra = self.extra.npu(device)
        return super().npu(device)


(x if args else y)().npu()


class Case:
    @property
    def cuda(self):
        return False

    def run(self):
        return step(cuda=self.cuda)
