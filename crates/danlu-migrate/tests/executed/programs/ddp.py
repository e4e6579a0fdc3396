"""Two processes, one for each card."""
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

rank = int(os.environ["RANK"])
local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group(backend="nccl")
torch.cuda.set_device(local_rank)
torch.manual_seed(11)
x = torch.randn(64, 4)
data = TensorDataset(x, x.sum(1, keepdim=True))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
model = torch.nn.Linear(4, 1).to(local_rank)
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for images, target in loader:
        images = images.cuda(local_rank, non_blocking=True)
        target = target.to(f"cuda:{local_rank}")
        loss = torch.nn.functional.mse_loss(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
total = loss.detach().cuda()
dist.all_reduce(total)
if rank == 0:
    print(f"loss {total.item():.8f}")
dist.destroy_process_group()
