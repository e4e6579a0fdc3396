"""Under the profiler."""
import torch
from torch.profiler import ProfilerActivity, profile, record_function

torch.manual_seed(5)
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.ones(16, 4, device="cuda")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    for step in range(10):
        with record_function("step"):
            loss = (model(x) - 2).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        profiler.step()
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
end.record()
torch.cuda.synchronize()
print(f"loss {loss.item():.8f}")
