# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch, its memory mapped piece by piece: virtual memory, which belongs to no context."""

import os

os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"

from torch_host import TorchCases
