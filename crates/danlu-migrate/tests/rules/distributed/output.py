"""One process with DataParallel, to become one process for each card."""
import os

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


GPU = 0
os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0"
os.environ.setdefault("ASCEND_RT_VISIBLE_DEVICES", "0")
os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0,1,2,3"


def first(x):
    a, b = torch.device("npu", LOCAL_RANK), torch.device(type="npu", index=LOCAL_RANK)
    with torch.npu.device(f"npu:{LOCAL_RANK}"):
        return x.npu(device=LOCAL_RANK), a, b, torch.device("cpu", 0)


def by_option(x, args):
    torch.npu.set_device(args.gpu)
    x = x.npu(args.gpu).npu(GPU).npu(device=GPU, non_blocking=True)
    x = x.to(f"npu:{GPU}").to(args.gpu).to(f"npu:{args.gpu}").to("npu:{}".format(args.gpu)).to("npu:%d" % GPU)
    return torch.device("npu", args.gpu), torch.device("npu:" + str(args.gpu)), torch.device("npu", 1)


def by_rank(x, local_rank, args):
    gpu = int(os.environ["LOCAL_RANK"])
    device = torch.device(f"npu:{args.local_rank}")
    torch.npu.set_device(local_rank)
    x = x.npu(gpu).npu(device).npu().to(f"npu:{gpu}").to(f"npu:{local_rank % 8}").to("npu:%d" % local_rank)
    visible = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    return x.npu(torch.npu.current_device()), torch.device("npu", local_rank), visible


if __name__ == "__main__":
    torch_npu.npu.set_device(LOCAL_RANK)
    torch.distributed.init_process_group(backend="hccl")
    main()
