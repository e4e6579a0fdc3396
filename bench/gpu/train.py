"""A training step loop on one GPU, as fast as it goes: prints how many samples a second it came to.

A small convolutional network on made-up pictures, in bfloat16: enough kernel launches per second that a launcher that held
up the program, its output or its processors would show.
"""

import os
import time

import torch
from torch import nn

BATCH, STEPS, WARM_UP = 512, 600, 60


def main():
    torch.manual_seed(0)
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    layers, channels = [], 3
    for width in (64, 128, 256):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
        channels = width
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(256 * 16, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    pictures = torch.randn(BATCH, 3, 32, 32, device=device)
    labels = torch.randint(0, 10, (BATCH,), device=device)
    for step in range(WARM_UP + STEPS):
        if step == WARM_UP:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
            print(f"::danlu progress {step / (WARM_UP + STEPS):.3f}", flush=True)
    torch.cuda.synchronize()
    print(f"samples_per_second {BATCH * STEPS / (time.perf_counter() - begin):.1f}", flush=True)


if __name__ == "__main__":
    main()
