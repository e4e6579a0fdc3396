#!/usr/bin/env python
"""Trains."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

try:
    import torch  # the real one
except ImportError:
    torch = None


def main():
    import torch.nn as nn
    return nn.Linear(1, 1).cuda()
