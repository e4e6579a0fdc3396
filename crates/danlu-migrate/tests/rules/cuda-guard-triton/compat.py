import torch
try:
    import triton
except ImportError:
    triton = None
