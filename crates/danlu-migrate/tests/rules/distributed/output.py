"""One process with DataParallel, to become one process for each card."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
import os
import torch.distributed
import torch_npu
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", os.environ.get("RANK_ID", "0")))


def main():
    torch.manual_seed(11)
    x = torch.randn(64, 4)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    loader = DataLoader(data, batch_size=8, sampler=torch.utils.data.distributed.DistributedSampler(data))
    model = nn.Linear(4, 1).npu()
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[LOCAL_RANK])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(20):
        loader.sampler.set_epoch(epoch)
        for images, target in loader:
            loss = nn.functional.mse_loss(model(images.npu()), target.npu())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.8f}")


CALCULATE_DEVICE = f"npu:{LOCAL_RANK}"


def place(x):
    torch.npu.set_device(CALCULATE_DEVICE)
    torch.npu.set_device(LOCAL_RANK)
    x.npu(LOCAL_RANK).to(f"npu:{LOCAL_RANK}")
    return x.to(f"npu:{LOCAL_RANK}"), x.to("npu:1")


def place_on_npu(x):
    return x.to(f"npu:{LOCAL_RANK}")


if __name__ == "__main__":
    torch_npu.npu.set_device(LOCAL_RANK)
    torch.distributed.init_process_group(backend="hccl")
    main()
