#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""migrate_test.py SOURCE_ROOT

docs/migrate.py on a source of 0.2, of which each line has the one that it becomes, or what is said of it, after `//`;
on a second one, which gets includes; and it finds nothing to do in what it has changed, nor in this repository's own
examples.
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
#include "cuguest/device_buffer.h"  // #include "cuguest/objects/device_buffer.h"
#include <cuguest/runtime/cublas.h>  // #include <cuguest/libraries/cublas.h>
#include "cuguest/runtime/device_buffer.h"  // #include "cuguest/runtime/device_buffer.h"
#include "cuguest/objects/stream.h"  // #include "cuguest/objects/stream.h"
#include "other/cuguest/error.h"  // #include "other/cuguest/error.h"
#include "cuguest/testing/sim.h"  // #include "cudasim/sim.h"
#include "cuguest/testing/sim_library.h"  // #include "cudasim/sim_library.h"
#include "cuguest/testing/stack_probe.h"  // #include "cuguest/testing/stack_probe.h"
const cuguest::testing::SimLive live = cuguest::testing::Sim::Live();  // const cudasim::SimLive live = cudasim::Sim::Live();
cuguest::Judgement said;  // says: Explain
Print(cuguest::JudgeVersions(versions));  // Print(cuguest::CheckCompatibility(versions));
const SuggestedShape best = SuggestShape(kernel, context).value();  // says: grid.x
if (CaptureStateOf(s) != cuguest::CaptureState::kNone) return;  // if (CaptureStatusOf(s) != CU_STREAM_CAPTURE_STATUS_NONE) return;
if (stream.capture_state() == CaptureState::kUnknown) return;  // if (stream.capture_status() == std::nullopt) return;
const cuguest::ArrayDescription shape = array.description();  // const cuguest::Array::Description shape = array.description();
using cuguest::runtime::CufftLayout;  // using CufftLayout = cuguest::runtime::CufftPlans::Layout;
const cuguest::runtime::CufftLayout line = Line(8);  // const cuguest::runtime::CufftPlans::Layout line = Line(8);
runtime::ArrayFormat format = *ToDriver(channels);  // says: NumChannels
runtime::CufftScope fft(plans, line, stream);  // runtime::CufftScope fft(plans, line, stream);
Run(fft.plan());  // says: handle()
using runtime::CufftLayout;  // using CufftLayout = runtime::CufftPlans::Layout;
const CaptureState state = Ask(stream);  // says: optional
if (!CheckCompatibility(versions).status.ok()) return;  // says: Explain
const auto attributes = kernel->Attributes(context);  // says: AttributesIn
Set(params.place(1));  // says: Kernel::Parameter
auto one = SharedContext::Create(device), two = SharedContext::Create(device);  // says: by itself
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
cuguest::ThreadResidency home(context);  // says: ThreadHome
cuguest_residency_enter(&residency, &ref, CUGUEST_HERE);  // says: cuguest_thread_home_enter_ref
#include "cuguest/sm_partition.h"  // #include "cuguest/sm_split.h"
#include "cuguest/param_layout.h"  // #include "cuguest/objects/param_buffer.h"
if (bytes > cuguest::kMaxParamBytes) return;  // if (bytes > cuguest::ParamBuffer::kMaxBytes) return;
const PackedParams params(n, a);  // says: values
using cuguest::IncidentKind;  // using IncidentKind = cuguest::Incident::Kind;
Count(cuguest::IncidentKind::kReplaced, Repair::kRepaired);  // Count(cuguest::Incident::Kind::kReplaced, Repair::kRepaired);
Device::At(cuguest::Ordinal{1}); Dim3 mine;  // cuguest::DeviceAt(cuguest::Device::Ordinal{1}); Dim3 mine;
#include "cuguest/device.h"  // #include "cuguest/devices.h"
#include "cuguest/sharing.h"  // #include "cuguest/sharing.h"
#include "cuguest/context_source.h"  // #include "cuguest/acquire.h"
const auto count = cuguest::Device::Count(); my::Device::Count();  // const auto count = cuguest::CountDevices(); my::Device::Count();
auto here = Device::OfCurrentContext();  // auto here = cuguest::CurrentDevice();
Show(*device.Name(), here->PciBusId(), primary.device().GetUuid());  // Show(*cuguest::NameOf(device), cuguest::PciBusIdOf(*here), cuguest::UuidOf(primary.device()));
absl::Status Warm(const Device& device, Kernel kernel) { return Say(device.Name(), kernel.Name()); }  // absl::Status Warm(const Device& device, Kernel kernel) { return Say(cuguest::NameOf(device), kernel.Name()); }
status = cuguest::SharedContext::CheckSharing();  // status = cuguest::CheckSharing();
using cuguest::AcquireResult;  // using cuguest::Acquired;
if (acquired->source() == cuguest::ContextSource::kPrimary) return;  // if (acquired->source() == cuguest::Acquired::Source::kPrimary) return;
Remember(acquired->device());  // says: GetDevice
options.cig = parameters;  // says: pointer
absl::Status Use(CUcontext handle) {  // absl::Status Use(CUcontext handle) {
  const absl::StatusOr<cuguest::SharedContext> shared = cuguest::SharedContext::Attach(handle);  //   const cuguest::SharedContext shared = cuguest::SharedContext::Attach(handle);
  if (!shared.ok()) return shared.status();  //   if (!shared.ok()) return cuguest::ToStatus(shared);
  absl::StatusOr<PrimaryContext> primary = PrimaryContext::Retain(device);  //   PrimaryContext primary = PrimaryContext::Retain(device);
  ContextGuard guard(shared->incarnation()); 2 * primary->flags();  //   ContextGuard guard(shared.context()); 2 * primary.flags();
  Keep(*std::move(primary), std::move(primary).value(), (*shared).get(), 2 *shared);  //   Keep(std::move(primary), std::move(primary), shared.get(), 2 *shared);
  if (CodeOf(primary.status()) == code) Log("primary.status() *primary");  //   if (CodeOf(cuguest::ToStatus(primary)) == code) Log("primary.status() *primary");
  if (auto found = AcquireFromStream(stream); found.ok()) { Enter(*found); } else { Say(found.status()); }  //   if (auto found = AcquireFromStream(stream); found.ok()) { Enter(found); } else { Say(cuguest::ToStatus(found)); }
  absl::StatusOr<Module> found = Load(); Say(found.status(), *found, found->name());  //   absl::StatusOr<Module> found = Load(); Say(found.status(), *found, found->name());
  primary->Release().IgnoreError(); CHECK_OK(primary->Release()); if (primary->Release().ok()) return;  //   static_cast<void>(primary.Release()); CHECK_OK(cuguest::ToStatus(primary.Release())); if (primary.Release().ok()) return;
  return shared->Detach();  //   return cuguest::ToStatus(shared.Release());
}  // }
void Other(absl::StatusOr<Module> shared) { Say(shared.status(), shared->name()); }  // void Other(absl::StatusOr<Module> shared) { Say(shared.status(), shared->name()); }
void Given(const AcquireResult& result) { Say(result.status(), result->get()); }  // void Given(const Acquired& result) { Say(cuguest::ToStatus(result), result.get()); }
const absl::StatusOr<PrimaryContext::State> state = PrimaryContext::Query(device); Say(state->active);  // const PrimaryContext::State state = PrimaryContext::Query(device); Say(state.active);
absl::StatusOr<SharedContext> Member::Make() { return other; }  // says: object itself
RETURN_OR_ASSIGN(context, SharedContext::Attach(handle));  // RETURN_OR_ASSIGN(context, SharedContext::Attach(handle));
ASSIGN_OR_RETURN(const SharedContext context, SharedContext::Attach(handle));  // says: CUGUEST_ASSIGN_OR_RETURN
if (SharedContext::Create(device).status().ok()) return;  // if (cuguest::ToStatus(SharedContext::Create(device)).ok()) return;
Member member{*SharedContext::Create(device), PrimaryContext::Retain(Device::Borrow(0)).value()};  // Member member{SharedContext::Create(device), PrimaryContext::Retain(Device::Borrow(0))};
handle = SharedContext::Create(device)->get(); my::AcquireOn(device).value();  // handle = SharedContext::Create(device).get(); my::AcquireOn(device).value();
AcquiredGuard inside(AcquireOn(device)); if (!inside.ok()) return inside.status();  // AcquiredGuard inside(AcquireOn(device)); if (!inside.ok()) return cuguest::ToStatus(inside);
Say(runtime::DeviceGuard(device, IfInactive::kCreate).status());  // Say(cuguest::ToStatus(runtime::DeviceGuard(device, IfInactive::kCreate)));
if (Copy(view, HostSpan<const float>(values)).ok()) return;  // says: Upload
status = cuguest::CopyAsync(cuguest::HostSpan<int>(values), view, stream);  // says: Download
MyJudgement mine;  // MyJudgement mine;
"""
lines = [line.split("  // ", 1) for line in SOURCE.splitlines()]
# A source that has not the headers of what it calls afterwards.
WITHOUT = """\
#include "cuguest/context_guard.h"
#include "cuguest/shared_context.h"
#include "other.h"
absl::Status Begin(CUcontext handle) { return cuguest::SharedContext::Attach(handle).status(); }
int Count() { return cuguest::Device::Count().value_or(0); }
absl::Status Check() { return SharedContext::CheckSharing(); }
"""
WITH = """\
#include "cuguest/context_guard.h"
#include "cuguest/devices.h"
#include "cuguest/shared_context.h"
#include "cuguest/sharing.h"
#include "cuguest/status.h"
#include "other.h"
absl::Status Begin(CUcontext handle) { return cuguest::ToStatus(cuguest::SharedContext::Attach(handle)); }
int Count() { return cuguest::CountDevices().value_or(0); }
absl::Status Check() { return cuguest::CheckSharing(); }
"""
# Whole files, each by itself, and what they become.
ALONE = [
    # The header of the names of codes alone: its new name is the old one of another.
    ('#include "cuguest/error_text.h"\nconst char* text = Name(code);\n',
     '#include "cuguest/error.h"\nconst char* text = Name(code);\n', None),
    ('#include "cuguest/error_text.h"\nabsl::Status status = ToStatus(code, Name(code));\n',
     '#include "cuguest/error.h"\n#include "cuguest/status.h"\nabsl::Status status = ToStatus(code, Name(code));\n', None),
    ('#include "cuguest/error.h"\nint code = CodeOf(status);\n', '#include "cuguest/status.h"\nint code = CodeOf(status);\n', None),
    ('absl::StatusOr<SharedContext> x = absl::UnknownError(""); x = SharedContext::Create(device);\n', None, "object itself"),
    ("using namespace cuguest;\nDim3 block{32};\n", None, "LaunchShape::Dim3"),
    ("Dim3 block{32};\n", None, None),
    ("using namespace cuguest;\nusing Dim3 = my::Dim3;\n", None, None),
    ("std::vector<float> values(4);\nreturn Copy(view, values);\n", None, "Upload"),
    ("return Copy(view, other);\n", None, None),
    ("auto found = AcquireFromStream(stream); Use(found.device());\n", None, "GetDevice"),
    ('#include "cuguest/thread_residency.h"\n', '#include "cuguest/thread_home.h"\n', None),
    ("driver.StreamBeginCapture(stream, mode);\n", None, "ObjectDriver"),
    ("std::make_unique<ContextGuard>(context, Location{__FILE__, __LINE__});\n", None, "behind"),
]
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
    without = pathlib.Path(directory) / "without.cc"
    without.write_text(WITHOUT)
    check("--check fails where there are old names", run("--check", directory).returncode == 1)
    said = run(directory).stdout
    for number, (got, (before, wanted)) in enumerate(zip(file.read_text().splitlines(), lines), 1):
        advice = re.search(rf"guest\.cc:{number}: (.*)", said)
        if wanted.startswith("says: "):
            check(before, got == before and advice and wanted[6:] in advice[1])
        else:
            check(before, got == wanted and not advice)
    check("headers are included for what is called", without.read_text() == WITH)
    check("other files stay", (file.parent / "notes.txt").read_text() == SOURCE)
    again = run("--check", directory)
    check("there is nothing to do a second time", again.returncode == 0 and "0 files to change" in again.stdout)
    for number, (before, wanted, advice) in enumerate(ALONE):
        alone = pathlib.Path(directory) / f"alone_{number}.cc"
        alone.write_text(before)
        said = run(alone).stdout
        check(repr(before), alone.read_text() == (wanted or before) and (advice in said if advice else f"{alone}:" not in said))
        again = run(alone).stdout
        check(f"the same again: {before!r}", alone.read_text() == (wanted or before) and again.endswith("0 files changed\n"))
own = run("--check", root / "examples")
check("the examples have no old name", own.returncode == 0 and own.stdout.endswith("0 files to change\n"))
print(f"cases: {passed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)
