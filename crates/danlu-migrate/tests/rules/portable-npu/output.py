try:
    import torch_npu  # noqa: F401
    ACCELERATOR, COLLECTIVES = "npu", "hccl"
except ImportError:
    ACCELERATOR, COLLECTIVES = "cuda", "nccl"
import torch
import torch.distributed as dist
cuda = getattr(torch, ACCELERATOR)
autocast = getattr(torch, ACCELERATOR).amp.autocast

device = torch.device(ACCELERATOR if getattr(torch, ACCELERATOR).is_available() else "cpu")
dist.init_process_group(backend=COLLECTIVES)
x = torch.ones(3).to(ACCELERATOR)
with autocast():
    y = x.to(f"{ACCELERATOR}:0")
getattr(torch, ACCELERATOR).synchronize()
cuda.empty_cache()
z = torch_npu.npu_fusion_attention(x, y)
