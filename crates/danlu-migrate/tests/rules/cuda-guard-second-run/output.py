import torch
import torch_npu  # noqa: F401

# The first run makes functions name NPUs, and leaves in them what is for CUDA only. The second run leaves such functions alone, and still
# has to know what they hold.
CAN_SLEEP = torch.cuda.is_available()
CAN_LIST = torch.cuda.is_available()


def sleep(x):
    x = x.npu()
    if CAN_SLEEP:
        torch.cuda._sleep(100)
    return x


def architectures(x):
    x.npu()
    return torch.cuda.get_arch_list()


if CAN_LIST:
    print(architectures(torch.ones(1)))

available = torch.cuda.is_available()
if available:
    print(torch.cuda.get_arch_list())
else:
    print(torch.ones(1).npu())
available = False


class Trainer:
    use_cuda = torch.cuda.is_available()
    on_device = torch.cuda.is_available()

    def __init__(self, x):
        self.use_cuda = torch.cuda.is_available()
        self.x = x.npu()

    def start(self):
        if self.use_cuda:
            torch.cuda.nvtx.range_push("start")

    def stop(self):
        torch.npu.synchronize()
        if not self.on_device:
            return None
        return torch.cuda.get_arch_list()


# Code that its author wrote for both kinds of devices.
HAS_CUDA = torch.cuda.is_available()


def best():
    if is_npu_available():
        return "npu"
    if HAS_CUDA and torch.cuda.get_device_capability()[0] >= 8:
        return "cuda"
    return "cpu"
