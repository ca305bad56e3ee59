#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exports_map.py VERSION LIST...

Prints the version script of a simulated driver of CUDA VERSION (11080, say): all that
the lists (entry_list.h, unmodelled_list.h) have, but what came later. test/driver_version_test.cc compares the library
with the list as the compiler reads it.
"""

import re
import sys

# X(Base, version, suffix, ...  or  T(Base, version, suffix, twin_version, twin_suffix, ...
ROW = re.compile(r'^ *[XT]\((\w+), (\d+), "(\w*)",(?: (\d+), (\w+),)?', re.MULTILINE)


def symbols(text):
    """(symbol, version of its introduction) of each row and of its twin."""
    for base, version, suffix, twin_version, twin_suffix in ROW.findall(text):
        yield f"cu{base}{suffix}", int(version)
        if twin_version:
            yield f"cu{base}{suffix}_{twin_suffix}", int(twin_version)


def read(path):
    with open(path) as file:
        # A row may be broken anywhere.
        text = re.sub(r"\s*\\\n\s*", " ", file.read())
    return text.replace(" X(", "\nX(").replace(" T(", "\nT(")


def main():
    driver, lists = int(sys.argv[1]), sys.argv[2:]
    later = [symbol for path in lists for symbol, version in symbols(read(path)) if version > driver]
    print("{")
    print("  global: cu*;")
    print("  local:")
    for symbol in later:
        print(f"    {symbol};")
    print("    *;")
    print("};")


if __name__ == "__main__":
    main()
