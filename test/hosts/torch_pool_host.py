# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch, its memory from a pool of the driver's, which belongs to no context."""

import os

os.environ["PYTORCH_ALLOC_CONF"] = "backend:cudaMallocAsync"

from torch_host import TorchCases
