"""One card, with what such scripts usually do."""
import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
parser.add_argument("--steps", type=int, default=30)
args = parser.parse_args()

torch.manual_seed(7)
torch.cuda.manual_seed_all(7)
device = torch.device(args.device if torch.cuda.is_available() else "cpu")
assert device.type == "cuda"
torch.backends.cudnn.benchmark = True

model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)).cuda()
weights = torch.cuda.FloatTensor([1.0])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(64, 4).to(device)
y = x.sum(1, keepdim=True).cuda(non_blocking=True)
for step in range(args.steps):
    loss = nn.functional.mse_loss(model(x), y) * weights.item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
torch.save(model.state_dict(), "model.pt")
model.load_state_dict(torch.load("model.pt", map_location="cuda:0"))
assert x.is_cuda
print(f"loss {loss.item():.8f}")
