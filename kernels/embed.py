#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""embed.py NAME HEADER SOURCE (SYMBOL=FILE)...: files as C++ arrays."""
import sys

name, header, source, *pairs = sys.argv[1:]
declarations, definitions = [], []
for symbol, path in (pair.split("=", 1) for pair in pairs):
    data = open(path, "rb").read()
    # A PTX image is a C string to the driver; the zero is not counted in the size.
    rows = ["".join(f"{byte}," for byte in (data + b"\0")[i:i + 32]) for i in range(0, len(data) + 1, 32)]
    declarations.append(f"extern const unsigned char {symbol}[];\nextern const std::size_t {symbol}_size;\n")
    # cuModuleLoadData reads a fatbin in eights.
    definitions.append(f"alignas(8) const unsigned char {symbol}[] = {{\n" + "\n".join(rows) +
                       f"\n}};\nconst std::size_t {symbol}_size = {len(data)};\n")
space = "namespace cuguest_kernels {{\n{}}}  // namespace cuguest_kernels\n"
guard = f"CUGUEST_KERNELS_{name.upper()}_H_"
open(header, "w").write(f"// From {name}.cu.\n\n#ifndef {guard}\n#define {guard}\n\n#include <cstddef>\n\n" +
                        space.format("".join(declarations)) + f"\n#endif  // {guard}\n")
open(source, "w").write(f'// From {name}.cu.\n\n#include "kernels/{name}.h"\n\n' + space.format("".join(definitions)))
