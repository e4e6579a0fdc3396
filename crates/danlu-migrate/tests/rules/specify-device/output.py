import torch
import torch_npu  # noqa: F401


def main():
    return torch.ones(1).npu()


if __name__ == "__main__":
    import os
    torch_npu.npu.set_device(int(os.getenv("DEVICE_ID", "0")))
    main()
