"""Mixed precision, with aliases."""
import torch as t
from torch.cuda.amp import GradScaler, autocast
from torch import cuda

t.manual_seed(3)
cuda.manual_seed(3)
model = t.nn.Linear(8, 1).to("cuda:0")
optimizer = t.optim.SGD(model.parameters(), lr=0.05)
scaler = GradScaler()
stream = t.cuda.Stream()
x = t.randn(32, 8, device="cuda")
for step in range(20):
    with t.cuda.stream(stream), autocast():
        loss = (model(x) - 1).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
with t.autocast(device_type="cuda"):
    final = (model(x) - 1).pow(2).mean()
t.cuda.empty_cache()
print(f"loss {final.item():.8f}")
