"""One process with DataParallel, to become one process for each card."""
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


if __name__ == "__main__":
    main()
