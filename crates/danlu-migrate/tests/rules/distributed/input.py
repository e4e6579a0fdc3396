"""One process with DataParallel, to become one process for each card."""
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(11)
    x = torch.randn(64, 4)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model = nn.Linear(4, 1).cuda()
    model = nn.DataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(20):
        for images, target in loader:
            loss = nn.functional.mse_loss(model(images.cuda()), target.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.8f}")


CALCULATE_DEVICE = "gpu:0"


def place(x):
    torch.cuda.set_device(CALCULATE_DEVICE)
    torch.cuda.set_device(0)
    x.cuda(0).to(0)
    return x.to("cuda:0"), x.to("cuda:1")


def place_on_npu(x):
    return x.to("npu:0")


GPU = 0
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")
os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,2,3"


def first(x):
    a, b = torch.device("cuda", 0), torch.device(type="cuda", index=0)
    with torch.cuda.device(0):
        return x.cuda(device=0), a, b, torch.device("cpu", 0)


def by_option(x, args):
    torch.cuda.set_device(args.gpu)
    x = x.cuda(args.gpu).cuda(GPU).cuda(device=GPU, non_blocking=True)
    x = x.to(GPU).to(args.gpu).to(f"cuda:{args.gpu}").to("cuda:{}".format(args.gpu)).to("cuda:%d" % GPU)
    return torch.device("cuda", args.gpu), torch.device("cuda:" + str(args.gpu)), torch.device("cuda", 1)


def by_rank(x, local_rank, args):
    gpu = int(os.environ["LOCAL_RANK"])
    device = torch.device(f"cuda:{args.local_rank}")
    torch.cuda.set_device(local_rank)
    x = x.cuda(gpu).cuda(device).cuda().to(f"cuda:{gpu}").to(f"cuda:{local_rank % 8}").to("cuda:%d" % local_rank)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return x.cuda(torch.cuda.current_device()), torch.device("cuda", local_rank), visible


if __name__ == "__main__":
    main()
