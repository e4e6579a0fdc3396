try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None
