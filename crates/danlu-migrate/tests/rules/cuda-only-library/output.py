import amp_C
import bitsandbytes as bnb
import numba
import numba.cuda
import triton.language as tl
from apex import amp
from apex.optimizers import FusedAdam
from flash_attn import flash_attn_func
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
from xformers.ops import memory_efficient_attention
from fused import tl, triton
cupy, has_cupy = optional_import("cupy")
pynvml = importlib.import_module("pynvml")
imported = important("cupy")
import kernels as hub
import onnxruntime
activation = hub.get_kernel("kernels-community/activation")
session = onnxruntime.InferenceSession("model.onnx", providers=["CUDAExecutionProvider", "CPUExecutionProvider"])


def profiled(device):
    is_cuda = device == "cuda"
    if is_cuda:
        from pytorch_memlab import LineProfiler

        LineProfiler().enable()
