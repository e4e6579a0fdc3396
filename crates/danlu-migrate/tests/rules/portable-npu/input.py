import torch
import torch_npu  # noqa: F401
import torch.distributed as dist
from torch_npu import npu as cuda
from torch_npu.npu.amp import autocast

device = torch.device("npu" if torch.npu.is_available() else "cpu")
dist.init_process_group(backend="hccl")
x = torch.ones(3).npu()
with autocast():
    y = x.to("npu:0")
torch.npu.synchronize()
cuda.empty_cache()
z = torch_npu.npu_fusion_attention(x, y)
