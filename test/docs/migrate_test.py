#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""migrate_test.py SOURCE_ROOT

docs/migrate.py on a source of 0.2, of which each line has the one that it becomes, or what is said of it, after `//`;
and it finds nothing to do in what it has changed, nor in this repository's own examples.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1]).resolve()
SOURCE = """\
#include "cuguest/error.h"  // #include "cuguest/status.h"
#include <cuguest/error_text.h>  // #include <cuguest/error.h>
#include "other/cuguest/error.h"  // #include "other/cuguest/error.h"
#include "cuguest/testing/sim.h"  // #include "cudasim/sim.h"
#include "cuguest/testing/sim_library.h"  // #include "cudasim/sim_library.h"
#include "cuguest/testing/stack_probe.h"  // #include "cuguest/testing/stack_probe.h"
const cuguest::testing::SimLive live = cuguest::testing::Sim::Live();  // const cudasim::SimLive live = cudasim::Sim::Live();
cuguest::Judgement said = cuguest::JudgeVersions();  // cuguest::CompatibilityReport said = cuguest::CheckCompatibility();
setenv("CUGUEST_SIM_RUNTIME_VERSION", "12000", 1);  // setenv("CUDASIM_RUNTIME_VERSION", "12000", 1);
static_assert(ContextGuard::kMaxExactDepth > 8);  // static_assert(ExactGuard::kMaxDepth > 8);
ContextGuard guard(context, GuardMode::kExact);  // says: ExactGuard
ContextGuard guard(shared.incarnation());  // ContextGuard guard(shared.context());
guard->Restore(); buffer.Free(); green.Destroy();  // guard->Leave(); buffer.Release(); green.Release();
module->Unload(); access.Disable(); shared.Detach();  // module->Release(); access.Release(); shared.Release();
residency.Settle(); capture.Free(view); Free();  // residency.Reassert(); capture.Free(view); Free();
ContextGuard guard(context, Location::Here());  // says: behind
guard.emplace(context, cuguest::Location::Here());  // says: behind
guard.emplace(context, GuardMode::kElide, Location::Here());  // guard.emplace(context, GuardMode::kElide, Location::Here());
cuguest::SetIncidentHandler(&Log);  // says: IncidentListener
runtime::DeviceGuard guard(device);  // says: kCreate
runtime::DeviceGuard guard(device, IfInactive::kRefuse);  // runtime::DeviceGuard guard(device, IfInactive::kRefuse);
cuguest::ThreadResidency home(context);  // says: kAlwaysPush
#include "cuguest/sm_partition.h"  // #include "cuguest/sm_split.h"
#include "cuguest/param_layout.h"  // #include "cuguest/param_buffer.h"
if (bytes > cuguest::kMaxParamBytes) return;  // if (bytes > cuguest::ParamBuffer::kMaxBytes) return;
const PackedParams params(n, a);  // says: values
using cuguest::IncidentKind;  // using IncidentKind = cuguest::Incident::Kind;
Count(cuguest::IncidentKind::kReplaced, Repair::kRepaired);  // Count(cuguest::Incident::Kind::kReplaced, Repair::kRepaired);
DeviceAt(cuguest::Ordinal{1}); Dim3 mine;  // DeviceAt(cuguest::Device::Ordinal{1}); Dim3 mine;
if (Copy(view, HostSpan<const float>(values)).ok()) return;  // says: Upload
status = cuguest::CopyAsync(cuguest::HostSpan<int>(values), view, stream);  // says: Download
MyJudgement mine;  // MyJudgement mine;
"""
lines = [line.split("  // ") for line in SOURCE.splitlines()]
passed = failed = 0


def check(what, is_so):
    global passed, failed
    print("ok:" if is_so else "not ok:", what)
    passed, failed = passed + is_so, failed + (not is_so)


def run(*arguments):
    command = [sys.executable, root / "docs" / "migrate.py", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)


with tempfile.TemporaryDirectory() as directory:
    file = pathlib.Path(directory) / "nested" / "guest.cc"
    file.parent.mkdir()
    (file.parent / "notes.txt").write_text(SOURCE)
    file.write_text("".join(f"{before}\n" for before, _ in lines))
    check("--check fails where there are old names", run("--check", directory).returncode == 1)
    said = run(directory).stdout
    for number, (got, (before, wanted)) in enumerate(zip(file.read_text().splitlines(), lines), 1):
        advice = re.search(rf"guest\.cc:{number}: (.*)", said)
        if wanted.startswith("says: "):
            check(before, got == before and advice and wanted[6:] in advice[1])
        else:
            check(before, got == wanted and not advice)
    check("other files stay", (file.parent / "notes.txt").read_text() == SOURCE)
    again = run("--check", directory)
    check("there is nothing to do a second time", again.returncode == 0 and "0 files to change" in again.stdout)
own = run("--check", root / "examples")
check("the examples have no old name", own.returncode == 0 and own.stdout.endswith("0 files to change\n"))
print(f"cases: {passed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)
