import torch
from accelerate.utils import is_npu_available

DEVICES = ("cpu", "xpu", "npu", "cuda")
NAMES = ["to", "npu", "cuda"]


def best():
    if is_npu_available():
        return torch.device("npu")
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("cpu")


def plain(input):  # an npu would be nice
    return input.cuda()


if torch.cuda.is_available():
    kind = "cuda"
elif hasattr(torch, "npu"):
    kind = "npu"


def options(parser):
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--backend", help="\"hccl\" for Ascend NPU")


# One of two functions, each of which answers for its own kind.
def is_torch_npu_available():
    return find("torch_npu")


def is_torch_cuda_available():
    return torch.cuda.is_available()


def has_cuda():
    return torch.cuda.is_available()
