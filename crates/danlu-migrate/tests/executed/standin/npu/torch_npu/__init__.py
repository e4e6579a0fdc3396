"""Stands in for Ascend's torch_npu in tests: the names that migrated programs use, on the CPU."""
import sys
import types

import accelerator
import torch
import torch.profiler

npu = accelerator.install("npu")
accelerator.other_device_is_gone("cuda")
sys.modules["torch_npu.npu"] = npu
sys.modules["torch_npu.npu.amp"] = npu.amp

profiler = types.ModuleType("torch_npu.profiler")


class ProfilerActivity:
    CPU = torch.profiler.ProfilerActivity.CPU
    NPU = torch.profiler.ProfilerActivity.CPU


profiler.ProfilerActivity = ProfilerActivity
profiler.ProfilerAction = torch.profiler.ProfilerAction
profiler.profile = torch.profiler.profile
profiler.schedule = torch.profiler.schedule
profiler.tensorboard_trace_handler = torch.profiler.tensorboard_trace_handler
sys.modules["torch_npu.profiler"] = profiler
distributed = types.ModuleType("torch_npu.distributed")
distributed.is_hccl_available = lambda: True
sys.modules["torch_npu.distributed"] = distributed
