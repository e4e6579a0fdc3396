import torch
from models import network

network.cuda()
x = torch.ones(2).cuda()
y = x.cuda(0, non_blocking=True)
z = [t.cuda(device=i) for i, t in enumerate([x, y])]
storage = torch.load("a.pt", map_location=lambda s, loc: s.cuda(1))
to_device = torch.Tensor.cuda
move = x.cuda
args = object()
if args.cuda:
    x = x.cuda()
args.cuda = args.cuda and torch.cuda.is_available()
print(torch.version.cuda)


class Holder(torch.nn.Module):
    def cuda(self, device=None):
        self.extra = self.extra.cuda(device)
        return super().cuda(device)


(x if args else y)().cuda()


class Case:
    @property
    def cuda(self):
        return False

    def run(self):
        return step(cuda=self.cuda)
