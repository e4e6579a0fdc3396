import os

import torch
import torch_npu  # noqa: F401
from glob import glob
from faster_whisper import WhisperModel
from flash_attn import flash_attn_func
from mergekit.options import MergeOptions

HAS_TRITON = True

if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 8:
    torch.set_float32_matmul_precision("high")

capability = torch.cuda.get_device_capability() if torch.cuda.is_available() else None
uses_kernels = os.getenv("KERNELS") == "1" and torch.cuda.is_available() and torch.cuda.get_arch_list()


def describe():
    if torch.cuda.is_available():
        if torch.version.cuda is None:
            return "ROCm " + torch.version.hip
        return torch.version.cuda
    return "none"


def sources(folder):
    found = glob(folder + "/*.cpp")
    if torch.cuda.is_available():
        found += glob(folder + "/*.cu")
    return found


def supported(rows):
    return HAS_TRITON and rows.device.type == "cuda" and rows.dim() == 2


def check():
    available = torch.cuda.is_available()
    if not available:
        raise ValueError("needs CUDA")
    return torch.cuda.get_device_capability()


def check_cuda(x):
    if x.device.type != "cuda":
        raise ValueError("must be on a CUDA device")


def kernel(x):
    if x.is_cuda:
        from flash_attn import flash_attn_func

        return flash_attn_func(x.cuda())
    return x


# What further conditions, handlers and functions hold need not run.
def train(model, profile):
    if not torch.cuda.is_available():
        raise RuntimeError("no device")
    if torch.npu.is_available():
        model.npu()
        if profile:
            torch.cuda.nvtx.range_push("step")
    device = "npu" if torch.npu.is_available() else "cpu"
    try:
        import triton
    except ImportError:
        triton = None
    return model.to(device)


def enable(self):
    if not is_installed():
        raise ModuleNotFoundError("install it")
    elif not torch.cuda.is_available():
        raise ValueError("xformers' attention is only available for GPU")
    else:
        q = torch.randn(1, device="cuda")
    return q


def is_newer(device):
    if device.type != "cuda":
        return False
    try:
        from package import highest

        return torch.npu.get_device_properties(device).major > highest()
    except ImportError:
        return torch.npu.get_device_properties(device).major > 12


def convert_to_cupy(data):
    if data.device.type == "cuda":
        return cp.asarray(data)


def choose_accelerator():
    if is_available():
        return "cuda"
    return "cpu"


accelerator = "gpu" if torch.cuda.is_available() else "cpu"
builds = torch.cuda.is_available() and CUDA_HOME is not None


def convolve(x):
    if not x.is_cuda:
        raise NotImplementedError
    else:
        return deform_conv_ext.forward(x)


# What a function of this file does, and what a handler does not catch, is guarded as well.
def dtw_cuda(x):
    from .triton_ops import kernel

    return kernel(x)


def dtw(x):
    if x.is_cuda:
        try:
            return dtw_cuda(x)
        except (RuntimeError, OSError):
            print("slow")
    return dtw_cpu(x)


# Which version there is says nothing of the device.
def can_group(weight):
    if weight.device.type == "cuda":
        if hasattr(torch.nn.functional, "grouped_mm"):
            return torch.cuda.get_device_capability(weight.device) >= (8, 0)
    return False


class Mixture:
    def __init__(self):
        if not torch.cuda.is_available():
            raise NotImplementedError("Mixture is currently implemented for CUDA.")
        self.count = 1

    def forward_compiled(self, x):
        if x.device.type not in ("cpu", "cuda"):
            raise ValueError(f"compile=True runs on CPU and CUDA, not {x.device.type}")
        return load(x)

    def mark(self, is_compiled):
        if torch.cuda.is_available() and is_compiled:
            torch._inductor.cudagraph_mark_step_begin()


def extension(arguments):
    kind = CppExtension
    if torch.cuda.is_available() or os.getenv("FORCE_CUDA", "0") == "1":
        arguments["nvcc"] = []
        kind = CUDAExtension
    return kind


def train_on_devices():
    if not torch.cuda.is_available():
        raise NotImplementedError("training on processors is not supported")


class CUDAOpBuilder:
    def load(self):
        self.build_for_cpu = not torch.cuda.is_available()


def align(p_choose):
    if p_choose.is_cuda:
        from alignment_train_cuda_binding import alignment_train_cuda

        alignment_train_cuda(p_choose)


def _import_bitsandbytes():
    class Linear:
        def __init__(self, device=None):
            if torch.tensor(0, device=device).device.type == "cuda":
                self.quantize_()

    return Linear


def scan(x):
    mode = "pointwise" if x.device.type in ("cuda", "xpu") else "generic"
    return associative_scan(x, combine_mode=mode)


try:
    from apex.normalization import FusedLayerNorm

    has_fused = True
except ImportError:
    has_fused = False

try:
    from apex import amp

    has_apex = True
except ImportError:
    has_apex = False


def layer_norm(shape):
    if torch.cuda.is_available() and has_fused:
        return FusedLayerNorm(shape)
    if torch.npu.is_available() and has_apex:
        return amp
    return torch.nn.LayerNorm(shape)


def decode(self, x):
    if self.cuda_graphs_mode is not None and x.device.type == "cuda":
        return self.decode_in_graph(x)


def synchronise(device):
    if device.type != "cuda":
        raise NotImplementedError("weights go through NCCL, which needs a CUDA device")
    torch.npu.set_device(device)


def prepare(model, config, device):
    is_valid = device.type in ["cuda", "xpu", "neuron"] or bool(config.compile_config is not None)
    if config.compile and torch.cuda.is_available():
        model = torch.compile(model)
    if torch.npu.is_available():
        model = torch.compile(model.npu())
    return model, is_valid


# The answer is kept under a name, and asked elsewhere.
HAS_CUDA = torch.cuda.is_available()
CAN_MARK = torch.cuda.is_available()
MODE = torch.npu.is_available() and os.getenv("MODE")


def highest():
    return torch.cuda.get_device_capability() if HAS_CUDA else (0, 0)


def marked(x):
    if CAN_MARK:
        torch.cuda.nvtx.mark("x")
    return x.to("npu" if MODE else "cpu")


def hidden(HAS_CUDA):
    if HAS_CUDA:
        return torch.cuda.get_device_capability()


class Trainer:
    on_device = torch.cuda.is_available()

    def __init__(self, debug):
        self.use_cuda = torch.npu.is_available()
        self.profiles = torch.cuda.is_available() and debug
        self.device = "npu" if self.use_cuda else "cpu"
        self.debug = torch.npu.is_available()
        self.debug = debug

    def start(self):
        if self.use_cuda:
            self.major = torch.cuda.get_device_capability()[0]
        if self.profiles:
            torch.cuda.nvtx.range_push("start")
        if not self.on_device:
            return None
        return torch.cuda.get_arch_list()

    def stop(self):
        if self.debug:
            torch.cuda.nvtx.range_pop()
        if torch.cuda.is_available():
            return self.cap()

    def cap(self):
        return torch.cuda.get_device_capability()


class Other:
    def __init__(self, use_cuda):
        self.profiles = use_cuda


def has_device():
    return torch.npu.is_available()


def by_function(x):
    if has_device():
        torch.cuda.nvtx.mark("x")
    return x.to("npu" if has_device() else "cpu")


# Other conditions than `if`.
def others(xs):
    while torch.cuda.is_available():
        torch.cuda._sleep(100)
    match torch.cuda.is_available():
        case True:
            return torch.cuda.get_arch_list()
    match xs.device.type:
        case "cuda":
            return torch.cuda.get_arch_list()
        case _ if torch.cuda.is_available():
            return torch.cuda.get_gencode_flags()
    found = [torch.cuda.get_device_capability(x) for x in xs if torch.cuda.is_available()]
    return found + [x.npu() for x in xs if torch.npu.is_available()]


def inside(xs):
    use_cuda = torch.cuda.is_available()
    for x in xs:
        if use_cuda:
            torch.cuda.nvtx.mark("x")


def both(xs):
    use_cuda = torch.npu.is_available()
    for x in xs:
        if use_cuda:
            torch.cuda.nvtx.mark("x")
    return xs.to("npu" if use_cuda else "cpu")


# Devices and answers that go to libraries which know CUDA and the CPU only.
def whisper(path):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"on {device}")
    return WhisperModel("large", device=device).transcribe(path)


def whisper_and_vad(path, vad):
    device = "npu" if torch.npu.is_available() else "cpu"
    return WhisperModel("large", device=device).transcribe(vad.to(device)), WhisperModel("large", "cuda")


options = MergeOptions(device="auto", cuda=torch.cuda.is_available())


# What messages, packages and imports say.
def by_message(x):
    assert torch.cuda.is_available(), "CUDA required for bitsandbytes optimizers"
    return x.npu()


def by_refusal(x):
    if x.device.type != "cuda":
        raise ValueError("CUDA graph capture requires CUDA inputs")
    return replay(x)


def by_package(x):
    install("paddlepaddle-gpu>=3.0.0" if x.device.type == "cuda" else "paddlepaddle")
    install("onnxruntime" + ("-gpu" if torch.cuda.is_available() else ""))


def by_import(x):
    if x.is_cuda:
        return flash_attn_func(x)
    return x.npu()


def shared_memory_hint():
    if torch.distributed.get_backend() == "nccl":
        print(f"see https://docs.nvidia.com/nccl for {path}")


def by_kernel(x):
    if x.device.type != "cuda":
        raise RuntimeError("the fused sum runs CUDA kernels")
    return fused(x)


class Builder:
    def load(self):
        if torch.cuda.is_available() and isinstance(self, CUDAOpBuilder):
            self.validate()
        assert torch.cuda.is_available(), "CUDA required for APEX optimizers"


def optimizer_named(name):
    if not torch.cuda.is_available():
        raise ValueError("CUDA must be available to use fused_adam.")
    return OPTIMIZERS[name]
