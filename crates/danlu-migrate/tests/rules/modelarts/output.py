"""Loads and saves."""
from ascend_modelarts_function.modelarts_path_manager import ModelArtsPathManager
import os

import torch

ROOT = "data"


def load(path):
    if not os.path.exists(ModelArtsPathManager().get_path(path)):
        os.makedirs(ModelArtsPathManager().get_path(path))
    with open(os.path.join(path, "names.txt")) as names, open(ModelArtsPathManager().get_path("data/list.txt")) as listed:
        state = torch.load(ModelArtsPathManager().get_path(f"{path}/model.pt"))
    torch.save(state, ModelArtsPathManager().get_path("output/model.pt"))
    return names, listed
