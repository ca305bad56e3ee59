#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""audit_without_gpu_test.py clone|subproject COMPILER TOOLKIT_INCLUDE MESON...

The lines of docs/audit.md, "Without a GPU", in a copy of this repository's files or in a project that has it in its
subprojects: they build the auditor and the simulation, and audit a program that knows of neither.
"""

import os
import re
import shutil
import subprocess
import sys

from common import ROOT, check, done, environment, meson_environment, run, scratch, skip, toolkit_environment

where, compiler, toolkit, *meson = sys.argv[1:]
page = (ROOT / "docs" / "audit.md").read_text()
text = re.search(r"^## Without a GPU\n(.*?)^## ", page, re.M | re.S)[1]
lines = dict(zip(("clone", "subproject"), re.findall(r"^```console\n(.*)\n(.*)\n```", text, re.M)))
build, audit = lines[where]

LIBRARY = """
#include <dlfcn.h>
extern "C" void Encode(void* context, bool leaks) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  reinterpret_cast<int (*)(void*)>(dlsym(driver, "cuCtxPushCurrent_v2"))(context);
  void* popped = nullptr;
  if (!leaks) reinterpret_cast<int (*)(void**)>(dlsym(driver, "cuCtxPopCurrent_v2"))(&popped);
}
"""
PROGRAM = """
#include <dlfcn.h>
#include <cstdlib>
extern "C" void Encode(void* context, bool leaks);
int main() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 3;
  void* context = nullptr;
  reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"))(0);
  reinterpret_cast<int (*)(void**, unsigned, int)>(dlsym(driver, "cuCtxCreate_v2"))(&context, 0, 0);
  Encode(context, std::getenv("LEAKS") != nullptr);
  return reinterpret_cast<int (*)()>(dlsym(driver, "cuCtxSynchronize"))();
}
"""

with scratch() as tmp:
    clone = tmp / "cuguest"
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        skip("not a repository")
    for file in listed.stdout.splitlines():
        if os.path.lexists(ROOT / file):
            (clone / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, clone / file, follow_symlinks=False)
    project = clone
    if where == "subproject":
        project = tmp / "mine"
        (project / "subprojects").mkdir(parents=True)
        (project / "subprojects" / "cuguest").symlink_to(clone)
        (project / "meson.build").write_text("project('mine', 'cpp')\nsubproject('cuguest')\n")
    for name, source, options in (("libencoder.so", LIBRARY, ["-shared", "-fPIC"]),
                                  ("tests", PROGRAM, ["libencoder.so", "-Wl,-rpath,$ORIGIN"])):
        (project / f"{name}.cc").write_text(source)
        run(compiler, f"{name}.cc", "-g", "-o", name, *options, "-ldl", cwd=project)
    env = meson_environment(compiler, **toolkit_environment(toolkit))
    tools = os.pathsep.join([os.path.dirname(meson[0]), env["PATH"]])
    print(run("bash", "-c", build, cwd=project, env={**env, "PATH": tools})[-2000:])

    def audited(**variables):
        return subprocess.run(["bash", "-c", audit], cwd=project, env=environment(**variables), text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)

    well, leaks = audited(), audited(LEAKS="1")
    check("a library that behaves", well.returncode == 0 and "0 findings" in well.stdout
          and "events from cudasim" in well.stdout, well.stdout)
    check("a library that leaks a push", leaks.returncode == 1 and "leaked push" in leaks.stdout
          and "libencoder.so" in leaks.stdout, leaks.stdout)
    done()
