#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""object_rule_test.py OBJECT_RULE_CC INCLUDE

The letters of audit/collect/object_rule.cc are the parameters that CUPTI shows, in the toolkit's headers generated_*_meta.h.
"""

import pathlib
import re
import sys

rules, include = map(pathlib.Path, sys.argv[1:])
SKIPPED = 77
HEADERS = {"cu": "generated_cuda_meta.h", "cuda": "generated_cuda_runtime_api_meta.h"}
ARRAYS = ["CUarray", "CUmipmappedArray", "cudaArray_t", "cudaArray_const_t", "cudaMipmappedArray_t", "cudaMipmappedArray_const_t"]
MEMORY = ["CUdeviceptr", "void *", "const void *"]
TYPES = {
    "S": ["CUstream", "cudaStream_t"], "E": ["CUevent", "cudaEvent_t"], "M": ["CUmodule"], "F": ["CUfunction"], "A": ARRAYS,
    "T": ["CUtexObject", "cudaTextureObject_t"], "U": ["CUsurfObject", "cudaSurfaceObject_t"], "D": MEMORY, "H": ["void *"],
    "P": MEMORY, "s": ["CUstream *", "cudaStream_t *"], "e": ["CUevent *", "cudaEvent_t *"], "m": ["CUmodule *"],
    "l": ["CUmodule *"], "f": ["CUfunction *"], "k": ["CUfunction *", "cudaFunction_t *"],
    "a": [f"{name} *" for name in ARRAYS], "g": [f"{name} *" for name in ARRAYS], "t": ["CUtexObject *", "cudaTextureObject_t *"],
    "u": ["CUsurfObject *", "cudaSurfaceObject_t *"], "d": ["CUdeviceptr *", "void **", "struct cudaPitchedPtr *"],
    "h": ["void **"], "p": ["CUdeviceptr *", "void **"], "n": ["size_t"], "C": ["CUgreenCtx", "cudaExecutionContext_t"],
    "3": ["dim3", "struct dim3"], "K": ["const CUlaunchConfig *", "const cudaLaunchConfig_t *"],
}
OF_FOUR = ["int", "unsigned int", "unsigned char", "unsigned short", "CUdevice", "enum cudaMemcpyKind", "CUfunction_attribute"]
LARGE = re.compile(r"dim3|Extent |IpcMemHandle|IpcEventHandle|PitchedPtr$|CUmemLocation|cudaMemLocation")


def structures(header):
    """{name of the function, with its suffixes: types of its parameters}"""
    found = re.finditer(r"typedef struct (\w+?)_params_st \{(.*?)\}", header.read_text(), re.S)
    return {one[1]: [re.sub(r"\w+$", "", part.strip()).strip() for part in one[2].split(";") if part.strip()] for one in found}


def rows(table):
    """(name, letters) of the rules of that table."""
    block = re.search(rf"{table}\[\] = \{{(.*?)\n\}};", rules.read_text(), re.S)[1]
    return re.findall(r'\{"(\w+)", "([^"]*)", \w+\}', block)


def wrong_with(letters, types):
    """What does not fit."""
    if len(letters) > len(types):
        return ["there are fewer parameters"]
    wrong = []
    for letter, name in zip(letters, types):
        name = re.sub(r"\s+", " ", name)
        last = letter == letters[-1]
        fits = (name in OF_FOUR if letter == "," else name in TYPES[letter] if letter in TYPES else
                name not in OF_FOUR and (last or "*" in name or not LARGE.search(name)))
        if not fits:
            wrong.append(f"{letter} is {name}")
    return wrong


def main():
    if not all((include / name).exists() for name in HEADERS.values()):
        print("skipped: the toolkit has no headers of its parameters")
        return SKIPPED
    checked, wrong = 0, []
    for prefix, name in HEADERS.items():
        known = structures(include / name)
        for table in ("kCommonRules", "kDriverRules" if prefix == "cu" else "kRuntimeRules"):
            for function, letters in rows(table):
                pattern = re.compile(rf"{prefix}{function}(_v\d+|_ptsz|_ptds)*")
                for full, types in known.items():
                    is_old = f"{full}_v2" in known  # of before CUDA 3.2, with addresses and sizes of four bytes
                    if pattern.fullmatch(full) and not is_old:
                        checked += 1
                        wrong += [f"{full}: {what}" for what in wrong_with(letters, types)]
    print(*wrong, f"functions: {checked} checked, {len(wrong)} wrong", sep="\n")
    return 1 if wrong or checked < 300 else 0


sys.exit(main())
