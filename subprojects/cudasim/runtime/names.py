#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""names.py LIBRARIES [--check]

Writes names.inc of the simulated runtime and of each simulated toolkit library: what NVIDIA's library of that name
in the folder LIBRARIES exports. stubs.cc makes of them what is not modelled. --check compares instead, and fails
where they differ.
"""

import pathlib
import subprocess
import sys
import textwrap

ROOMS = {"cudart": "runtime", "cublas": "cublas", "cufft": "cufft", "curand": "curand", "cusolver": "cusolver",
         "cusparse": "cusparse", "nccl": "nccl"}
HERE = pathlib.Path(__file__).resolve().parent.parent


def exports(library):
    """The names of its functions, without their version nodes."""
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = (line.split() for line in lines.splitlines())
    names = {row[2].partition("@")[0] for row in rows if row[1] in "TW"}
    # NCCL has each function by a second name, for profilers.
    return sorted(name for name in names if not name.startswith("pnccl"))


def text_of(library):
    names = " ".join(f"X({name})" for name in exports(library))
    return (f"// SPDX-License-" f"Identifier: Apache-2.0 WITH LLVM-exception\n// What NVIDIA's {library.name} exports,"
            f" by runtime/names.py.\n{textwrap.fill(names, 120)}\n")


def main():
    folder, check = pathlib.Path(sys.argv[1]), sys.argv[2:] == ["--check"]
    passed = failed = skipped = 0
    for name, room in ROOMS.items():
        library, to = folder / f"lib{name}.so", HERE / room / "names.inc"
        if not library.exists():
            print(f"skipped: there is no {library}")
            skipped += 1
        elif not check:
            to.write_text(text_of(library))
        elif to.read_text() == text_of(library):
            passed += 1
        else:
            print(f"{to}: not what {library} exports; names.py {folder} writes it anew")
            failed += 1
    if check:
        print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
