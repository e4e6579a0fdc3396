"""A device that is not there: gives torch an accelerator called `cuda` or `npu` whose tensors live on the CPU.

Programs of the tests run under it twice, as they were and as they were migrated, and must train to the same loss. Only names
are under test here: everything that a migrated program calls has to exist under its new name, and nothing under the old one.
"""
import contextlib
import functools
import sys
import types

import torch
# Optimizers load it, and it wants the real `torch.cuda`, so it comes before there is another one.
import torch._dynamo
import torch.distributed
import torch.profiler


def install(name):
    """Adds the device `name`; `backend` is what collectives over it are called."""
    backend = {"cuda": "nccl", "npu": "hccl"}[name]
    if name != "cuda":
        torch.utils.rename_privateuse1_backend(name)
    state = {"device": 0, "seeds": []}
    module = types.ModuleType(f"torch.{name}")

    def on_host(device):
        text = str(device)
        if text == name or text.startswith(name + ":") or isinstance(device, int) and not isinstance(device, bool):
            return torch.device("cpu")
        other = "npu" if name == "cuda" else "cuda"
        if text.split(":")[0] == other:
            raise RuntimeError(f"there is no device {text} here")
        return device

    def translated(arguments, keywords):
        def one(value):
            return on_host(value) if isinstance(value, (str, torch.device)) and str(value).split(":")[0] in ("cuda", "npu") else value

        keywords = {key: one(value) if key in ("device", "map_location", "device_type") else value for key, value in keywords.items()}
        if isinstance(keywords.get("map_location"), dict):
            keywords["map_location"] = torch.device("cpu")
        if isinstance(keywords.get("device"), int):
            keywords["device"] = torch.device("cpu")
        return [one(argument) for argument in arguments], keywords

    def wrap(owner, attribute):
        original = getattr(owner, attribute)

        @functools.wraps(original)
        def wrapped(*arguments, **keywords):
            arguments, keywords = translated(arguments, keywords)
            return original(*arguments, **keywords)

        setattr(owner, attribute, wrapped)

    for maker in ("ones", "zeros", "empty", "tensor", "rand", "randn", "randint", "arange", "full", "load", "as_tensor"):
        wrap(torch, maker)
    for owner in (torch.Tensor, torch.nn.Module):
        wrap(owner, "to")
        setattr(owner, name, lambda self, *arguments, **keywords: self)
    setattr(torch.Tensor, f"is_{name}", property(lambda self: True))

    class Timer:
        def __init__(self, *arguments, **keywords):
            pass

        def record(self, *arguments):
            pass

        synchronize = wait_stream = wait = record

        def elapsed_time(self, other):
            return 0.0

    class Scaler:
        def scale(self, loss):
            return loss

        def unscale_(self, optimizer):
            pass

        def step(self, optimizer):
            optimizer.step()

        def update(self):
            pass

    def autocast(*arguments, **keywords):
        return contextlib.nullcontext()

    module.is_available = lambda: True
    module.device_count = lambda: 2
    module.current_device = lambda: state["device"]
    module.set_device = lambda device: state.update(device=device)
    # torch.manual_seed seeds every device that it knows; ours draws from the host's generator, which it has seeded already.
    module.manual_seed = module.manual_seed_all = lambda seed: None
    module._is_in_bad_fork = lambda: False
    module.Stream = module.Event = Timer
    module.stream = lambda stream: contextlib.nullcontext()
    module.current_stream = lambda *arguments: Timer()
    module.FloatTensor = torch.FloatTensor
    for nothing in ("synchronize", "empty_cache", "reset_peak_memory_stats"):
        setattr(module, nothing, lambda *arguments: None)
    for zero in ("memory_allocated", "max_memory_allocated", "memory_reserved"):
        setattr(module, zero, lambda *arguments: 0)
    module.amp = types.ModuleType(f"torch.{name}.amp")
    module.amp.autocast = autocast
    module.amp.GradScaler = lambda *arguments, **keywords: Scaler()
    torch.autocast = autocast
    torch.amp.autocast = autocast
    torch.amp.GradScaler = lambda *arguments, **keywords: Scaler()
    setattr(torch, name, module)
    sys.modules[f"torch.{name}"] = module
    sys.modules[f"torch.{name}.amp"] = module.amp

    join = torch.distributed.init_process_group

    def init_process_group(chosen=None, *arguments, **keywords):
        chosen = keywords.pop("backend", chosen)
        assert chosen == backend, f"the backend of {name} is {backend}, not {chosen}"
        join("gloo", *arguments, **keywords)

    torch.distributed.init_process_group = init_process_group
    parallel = torch.nn.parallel.DistributedDataParallel

    class OnHost(parallel):
        def __init__(self, inner, device_ids=None, output_device=None, **keywords):
            assert device_ids is None or device_ids == [state["device"]], device_ids
            super().__init__(inner, **keywords)

    torch.nn.parallel.DistributedDataParallel = OnHost
    return module


def other_device_is_gone(name):
    """Whatever still asks for the other accelerator fails."""
    real = getattr(torch, name)

    class Gone(types.ModuleType):
        def __getattr__(self, attribute):
            # What torch asks of it by itself.
            if attribute == "_is_in_bad_fork":
                return lambda: True
            if attribute.startswith("_"):
                return getattr(real, attribute)
            raise AttributeError(f"torch.{name}.{attribute} was asked for")

    gone = Gone(f"torch.{name}")
    setattr(torch, name, gone)
    for owner in (torch.Tensor, torch.nn.Module):
        if name in vars(owner) or hasattr(owner, name):
            def missing(self, *arguments, **keywords):
                raise AttributeError(f".{name}() was called")

            setattr(owner, name, missing)
