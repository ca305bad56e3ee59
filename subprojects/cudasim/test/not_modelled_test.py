#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""not_modelled_test.py SIMDIR [--fix]

NOT_MODELLED.md lists all that the simulation does not model: the rows of the driver's list, the weak symbols of
the simulated runtime and toolkit libraries in SIMDIR, and the comments "Not modelled: ..." at the calls that say so.
--fix writes it. The part of a library that was not built stays as it is.
"""

import pathlib
import re
import subprocess
import sys
import textwrap

simdir = pathlib.Path(sys.argv[1])
CUDASIM = pathlib.Path(__file__).resolve().parent.parent
PAGE = CUDASIM / "NOT_MODELLED.md"
LIBRARIES = {"libcudart": "the runtime", "libcublas": "cuBLAS", "libcufft": "cuFFT", "libcurand": "cuRAND",
             "libcusolver": "cuSOLVER", "libcusparse": "cuSPARSE", "libnccl": "NCCL"}
sys.path.insert(0, str(CUDASIM / "driver"))
import exports_map  # noqa: E402

HEAD = """# Not modelled

What the [simulation](README.md) exports, so that every program starts, and does not model. A call of it does nothing and
returns the library's code for what is not supported: `CUDA_ERROR_NOT_SUPPORTED`, `cudaErrorNotSupported`,
`CUBLAS_STATUS_NOT_SUPPORTED`, `CUFFT_NOT_SUPPORTED`, `CUSOLVER_STATUS_NOT_SUPPORTED`,
`CUSPARSE_STATUS_NOT_SUPPORTED`; cuRAND and NCCL have none, and return `CURAND_STATUS_ARCH_MISMATCH` and
`ncclInvalidUsage`. `Sim::UnmodelledCalls()` counts these calls, and the report of the command `cudasim` names them.
`test/not_modelled_test.py SIMDIR --fix` writes this page.

"""


def block(names):
    return f"```text\n{textwrap.fill(' '.join(sorted(names)), 120, break_on_hyphens=False)}\n```\n"


def options():
    """What the comments say, a line each."""
    found = []
    for path in sorted(CUDASIM.rglob("*.cc")):
        for said in re.findall(r"// Not modelled: ((?:[^\n]*[^.\n]\n *// )*[^\n]*\.)\n", path.read_text()):
            found.append(re.sub(r"\s*\n *// ", " ", said).rstrip("."))
    lines = [textwrap.fill(one, 120, initial_indent="- ", subsequent_indent="  ") for one in found]
    return "## Calls of functions that are modelled\n\n" + "\n".join(lines) + "\n"


def driver():
    text = "\n".join(exports_map.read(CUDASIM / "driver" / name) for name in ("entry_list.h", "unmodelled_list.h"))
    all_names = {name: version for name, version in exports_map.symbols(text)}
    names = {name: version for name, version in
             exports_map.symbols("\n".join(line for line in text.splitlines() if " NotModelled," in line))}
    old = [name for name, version in names.items() if version <= 13000]
    there = sum(version <= 13000 for version in all_names.values())
    part = f"## libcuda\n\n{len(old)} of the {there} symbols of a driver of CUDA 13.0:\n\n{block(old)}"
    for release in sorted(set(names.values()) - set(range(13001))):
        of_release = [name for name, version in names.items() if version == release]
        part += f"\nOf CUDA {release // 1000}.{release % 1000 // 10}:\n\n{block(of_release)}"
    return part


def library(name, title, old):
    path = simdir / f"{name}.so"
    if not path.exists():
        print(f"skipped: {name} was not built")
        return re.search(rf"^## {name}\n.*?(?=^## |\Z)", old, re.M | re.S)[0].rstrip("\n") + "\n"
    lines = subprocess.run(["nm", "-D", "--defined-only", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [line.split() for line in lines.splitlines()]
    names = [row[2].partition("@")[0] for row in rows if row[1] == "W"]
    there = sum(row[1] in "TW" and not row[2].startswith("cudasim") for row in rows)
    return f"## {name}\n\n{len(names)} of the {there} symbols of {title}:\n\n{block(names)}"


before = PAGE.read_text() if PAGE.exists() else ""
page = HEAD + "\n".join([options(), driver(), *(library(name, title, before) for name, title in LIBRARIES.items())])
failed = page != before
if failed and sys.argv[2:] == ["--fix"]:
    PAGE.write_text(page)
    failed = False
if failed:
    print(f"{PAGE} is not what the simulation has; {sys.argv[0]} {simdir} --fix writes it")
print(f"cases: {0 if failed else 1} passed, {1 if failed else 0} failed, 0 skipped")
sys.exit(1 if failed else 0)
