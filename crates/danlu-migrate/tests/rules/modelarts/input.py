"""Loads and saves."""
import os

import torch

ROOT = "data"


def load(path):
    if not os.path.exists(path):
        os.makedirs(path)
    with open(os.path.join(path, "names.txt")) as names, open("data/list.txt") as listed:
        state = torch.load(f"{path}/model.pt")
    torch.save(state, "output/model.pt")
    return names, listed
