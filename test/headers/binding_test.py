#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""binding_test.py SOURCE_ROOT BUILD_ROOT COMPILER

Note [Bound to one runtime] of docs/notes.md: nothing of the runtime namespace leaves a
shared library, and files of either default stream share nothing of it. Tried on each
kind of thing a header can define, and on the headers there are.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from flags import headers_that_can_be_included, system_includes

root, build, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
HEADERS = headers_that_can_be_included(
    sorted(path for folder in ("runtime", "libraries") for path in (root / "include" / "cuguest" / folder).glob("*.h")),
    build, compiler)
KINDS = """
CUGUEST_BEGIN_RUNTIME_NAMESPACE
inline int Function() { static int s_calls = 0; return ++s_calls; }
template <typename T> T Template(T value) { static T s_last = value; return s_last = value; }
struct Class {
  int Member() { return Function(); }
  static int Static() { return Function(); }
  virtual int Virtual() { return 1; }
  virtual ~Class() = default;
};
template <typename T> struct ClassTemplate { T Member(T value) { return Template(value); } };
namespace impl { inline int Nested() { return Function(); } }
inline int g_variable = 0;
CUGUEST_END_RUNTIME_NAMESPACE
struct [[gnu::visibility("default")]] Visible { int value = 0; };
int Use() {
  namespace r = cuguest::runtime;
  r::Class c;
  r::Class& base = c;
  return r::Template(1) + r::Template(Visible()).value + c.Member() + c.Static() + base.Virtual() +
         r::ClassTemplate<int>().Member(1) + r::impl::Nested() + ++r::g_variable;
}
"""
STREAMS = {"legacy_stream": [], "per_thread_stream": ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]}

passed = failed = 0


def check(what, holds, details):
    global passed, failed
    print("ok:" if holds else "NOT OK:", what)
    if holds:
        passed += 1
    else:
        failed += 1
        print(*details, sep="\n")


def symbols(library, *options):
    text = subprocess.run(["nm", "-C", "--defined-only", *options, library],
                          check=True, capture_output=True, text=True).stdout
    return {line.split(" ", 2)[2] for line in text.splitlines() if "::runtime::" in line}


source = "".join(f'#include "{h.relative_to(root / "include")}"\n' for h in HEADERS) + KINDS
with tempfile.TemporaryDirectory(prefix="cuguest-binding-") as folder:
    of = {}
    for stream, define in STREAMS.items():
        library = pathlib.Path(folder) / "library.so"
        subprocess.run([compiler, "-x", "c++", "-std=c++17", "-O0", "-fPIC", "-shared", "-fvisibility=default",
                        "-Wall", "-Wextra", "-Werror", f"-I{root / 'include'}", *system_includes(build),
                        *define, "-", "-o", library], input=source, check=True, text=True)
        of[stream] = symbols(library)
        exported = symbols(library, "-D")
        check(f"{compiler}, {stream}: exports nothing of the namespace", not exported, exported)
        strangers = {name for name in of[stream] if not re.search(rf"::runtime::v[\d_]+::{stream}::", name)}
        check(f"{compiler}, {stream}: everything is in the release's and the stream's namespace",
              len(of[stream]) >= 10 and not strangers, strangers)
    legacy, per_thread = of.values()
    check(f"{compiler}: the two share no symbol", not legacy & per_thread, legacy & per_thread)
print(f"cases: {passed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)
