import torch
import torch_npu  # noqa: F401
from torch_npu.profiler import ProfilerActivity, profile
from torch.profiler import (
    record_function,
)

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU], schedule=torch_npu.profiler.schedule(1, 1, 1)) as p:
    with record_function("step"):
        pass
with torch_npu.profiler.profile(
    activities=[torch_npu.profiler.ProfilerActivity.NPU],
    on_trace_ready=torch_npu.profiler.tensorboard_trace_handler("log"),
):
    pass
with torch.autograd.profiler.profile(use_cuda=True):
    pass
