import torch
from torch.profiler import (
    ProfilerActivity,
    profile,
    record_function,
)

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=torch.profiler.schedule(1, 1, 1)) as p:
    with record_function("step"):
        pass
with torch.profiler.profile(
    activities=[torch.profiler.ProfilerActivity.CUDA],
    on_trace_ready=torch.profiler.tensorboard_trace_handler("log"),
):
    pass
with torch.autograd.profiler.profile(use_cuda=True):
    pass
