#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""refused_test.py SOURCE_ROOT BUILD_ROOT COMPILER

What public headers refuse to compile, with the words that say what to do instead; and what comes
closest to it compiles.
"""

import pathlib
import subprocess
import sys

from flags import system_includes

root, build, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
PROLOGUE = """
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/context_guard.h"
#include "cuguest/exact_guard.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_ptr.h"
#include "cuguest/objects/graph.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/per_context.h"
#include "cuguest/relaxed.h"
#include "cuguest/objects/pinned_buffer.h"
#include "cuguest/libraries/cublas.h"
#include "cuguest/libraries/cufft.h"
#include "cuguest/libraries/cusparse.h"
using namespace cuguest;
struct Given {
  const Kernel& kernel;
  const LaunchShape& shape;
  const StreamRef& stream;
  const DeviceView<int>& view;
  const DeviceView<double>& doubles;
  const DeviceView<char>& letters;
  std::vector<int>& values;
  int* pointer;
  Device device;
  PerContext<int>& cache;
  const ContextRef& context;
  Graph& graph;
  LaunchShape& changed;
  std::array<void*, 1>& pointers;
  runtime::CublasHandles& blas;
  runtime::CusparseHandles& sparse;
  runtime::CufftPlans& plans;
  const DeviceView<std::byte>& bytes;
  absl::Span<void* const> span;
};
std::vector<int> Made();
std::string Text();
std::array<const int, 4> Constants();
struct Table {  // which owns its elements, and is only read
  using value_type = int;
  int values[4];
  const int* data() const { return values; }
  std::size_t size() const { return 4; }
};
Table MadeTable();
const Table ConstantTable();
struct Name {  // another, of letters
  using value_type = char;
  using traits_type = std::char_traits<char>;
  char letters[4];
  const char* data() const { return letters; }
  std::size_t size() const { return 4; }
};
struct Part {  // which refers to elements
  using value_type = int;
  const int* first;
  const int* data() const { return first; }
  std::size_t size() const { return 4; }
};
using Four = int[4];
struct Tail { int values[0]; };  // of no bytes, which gcc and clang have
struct End { int values[0]; };
std::vector<unsigned char> Bytes();
std::vector<CUlaunchAttribute> Attributes();
"""
DELETED = "deleted"
REFUSED = [
    ("const runtime::CusparseScope scope(g.sparse, g.stream, g.bytes);", "takes its workspace with each call"),
    ("using Plans = runtime::LibraryHandles<runtime::impl::Cufft>; static_cast<void>(static_cast<Plans&>(g.plans).Prepare(g.context));",
     "a plan is prepared for its layout"),
    ("using Plan = runtime::LibraryScope<runtime::impl::Cufft>; const Plan scope(g.plans, g.stream);", "a plan is borrowed for its layout"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, g.pointer));", "a pointer may as well be the host's"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, DevicePtr<int>(g.view), 1, g.pointer));", "a pointer may as well be the host's"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, g.values));", "its type must be trivially copyable"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, nullptr));", "nullptr has no type"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, HostSpan<int>(g.values)));", "this object is for the host"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, g.pointers));", "a container of pointers would be one parameter"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, 1, g.span));", "a container of pointers would be one parameter"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, std::array<std::array<const char*, 2>, 2>()));",
     "a container of pointers would be one parameter"),
    ("static_cast<void>(LaunchForElements(g.kernel, 1, g.stream, 1, g.pointers));", "a container of pointers would be one parameter"),
    ("static_cast<void>(g.graph.AddKernel(g.kernel, g.shape, {}, 1.0F, g.pointers));", "a container of pointers would be one parameter"),
    ("static_cast<void>(g.graph.AddKernel(g.kernel, g.shape, {}, 1.0F, g.span));", "a container of pointers would be one parameter"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, absl::MakeSpan(g.values)));", "a view may as well be one of the host's memory"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, std::string_view()));", "a view may as well be one of the host's memory"),
    ("static_cast<void>(g.graph.AddKernel(g.kernel, g.shape, {}, absl::string_view()));",
     "a view may as well be one of the host's memory"),
    ("static_cast<void>(Copy(g.view, g.values));", "no matching function"),
    ("static_cast<void>(Download(g.view, Made()));", "no matching function"),
    ("static_cast<void>(DownloadAsync(g.view, std::as_const(g.values), g.stream));", "no matching function"),
    ("static_cast<void>(UploadAsync(g.view, Made(), g.stream));", DELETED),
    ("static_cast<void>(UploadAsync(g.letters, Text(), g.stream));", DELETED),
    ("static_cast<void>(UploadAsync(g.view, Constants(), g.stream));", DELETED),
    ("static_cast<void>(UploadAsync(g.view, std::array<int, 4>(), g.stream));", DELETED),
    ("static_cast<void>(UploadAsync(g.view, MadeTable(), g.stream));", DELETED),
    ("static_cast<void>(UploadAsync(g.view, ConstantTable(), g.stream));", DELETED),
    ("static_cast<void>(UploadAsync(g.letters, Name(), g.stream));", DELETED),
    ("static_cast<void>(UploadAsync(g.view, Four{1, 2, 3, 4}, g.stream));", DELETED),
    ("static_cast<void>(UploadAsync(g.view, {{1, 2, 3, 4}}, g.stream));", "no matching function"),
    ("static_cast<void>(CodeImage::Borrow(Bytes(), {}));", DELETED),
    ("static_cast<void>(Module::Load(Bytes(), {}));", DELETED),
    ("static_cast<void>(Module::LoadIn(g.context, Bytes(), {}));", DELETED),
    ("g.changed.attributes = Attributes();", DELETED),
    ("g.changed.attributes = std::array<const CUlaunchAttribute, 1>();", DELETED),
    ("static_cast<void>(HostSpan<int>(Made()));", "no matching function"),
    ("static_cast<void>(Fill(g.doubles, 1.0));", "the driver fills with elements of 1, 2 or 4 bytes"),
    ("static_cast<void>(HostSpan<std::string>());", "must be trivially copyable"),
    ("static_cast<void>(HostSpan<Tail>());", "elements of no bytes"),
    ("static_cast<void>(DeviceView<Tail>());", "elements of no bytes"),
    ("static_cast<void>(DeviceBuffer<Tail>());", "elements of no bytes"),
    ("static_cast<void>(PinnedBuffer<Tail>());", "elements of no bytes"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, End()));", "a parameter has at least one byte"),
    ("static_cast<void>(ParamBuffer().Add(Tail()));", "a parameter has at least one byte"),
    ("static_cast<void>(Launch(g.kernel, g.shape, g.stream, std::array<char, 32760>(), 1.0));", "at most 32,764 bytes of parameters"),
    ("static_cast<void>([&]() -> absl::Status { CUGUEST_RETURN_IF_ERROR(ContextGuard(g.context)); return {}; }());", DELETED),
    ("static_cast<void>([&]() -> absl::Status { CUGUEST_RETURN_IF_ERROR(AcquiredGuard(g.device)); return {}; }());", DELETED),
    ("const ContextGuard guard(AcquireOn(g.device).context());", DELETED),
    ("ContextGuard guard(g.context); const ContextGuard copy(guard);", DELETED),
    ("ContextGuard guard(g.context); const ContextGuard moved(std::move(guard));", DELETED),
    ("ExactGuard guard(g.context); const ExactGuard copy(guard);", DELETED),
    ("Relaxed<ContextGuard> guard(g.context); const Relaxed<ContextGuard> copy(guard);", DELETED),
    ("absl::StatusOr<Acquired> acquired = AcquireOn(g.device);", "ambiguous"),
    ("absl::StatusOr<SharedContext> shared = SharedContext::Create(g.device);", "ambiguous"),
    ("absl::StatusOr<PrimaryContext> primary = PrimaryContext::Retain(g.device);", "ambiguous"),
    ("absl::StatusOr<PrimaryContext::State> state = PrimaryContext::Query(g.device);", "ambiguous"),
    ("static_cast<void>([&]() -> absl::StatusOr<SharedContext> { return SharedContext::Create(g.device); });", "ambiguous"),
    ("static_cast<void>(g.cache.GetOrMake(g.context, [](const ContextRef&) { return Text(); }));",
     "must return absl::StatusOr<T>"),
]
ACCEPTED = [
    "static_cast<void>(Launch(g.kernel, g.shape, g.stream, DevicePtr<int>(g.pointer), DevicePtr<int>(g.view), 1));",
    "static_cast<void>(Download(g.view, g.values));",
    "static_cast<void>(Upload(g.view, g.values));",
    "static_cast<void>(UploadAsync(g.view, g.values, g.stream));",
    "static_cast<void>(UploadAsync(g.view, std::as_const(g.values), g.stream));",
    "static_cast<void>(UploadAsync(g.view, HostSpan<const int>(g.values), g.stream));",
    "static_cast<void>(UploadAsync(g.view, absl::MakeConstSpan(g.values), g.stream));",
    "static_cast<void>(UploadAsync(g.letters, std::string_view(), g.stream));",
    "static_cast<void>(UploadAsync(g.letters, absl::string_view(), g.stream));",
    "static_cast<void>(UploadAsync(g.view, HostSpan<const int>(Part().data(), Part().size()), g.stream));",
    "static_cast<void>(DownloadAsync(g.view, g.values, g.stream));",
    "static_cast<void>(Upload(g.view, MadeTable()));",
    "static_cast<void>(Upload(g.view, Constants()));",
    "static_cast<void>(HostSpan<int>(absl::MakeSpan(g.values)));",
    "const int numbers[4] = {}; static_cast<void>(UploadAsync(g.view, numbers, g.stream));",
    "int numbers[4] = {}; static_cast<void>(Download(g.view, numbers)); static_cast<void>(Download(g.view, HostSpan(numbers)));",
    "static const auto bytes = Bytes(); static_cast<void>(CodeImage::Borrow(bytes, {})); static_cast<void>(Module::Load(bytes, {}));",
    "static_cast<void>(CodeImage::Copy(Bytes(), {}));",
    "const auto attributes = Attributes(); g.changed.attributes = attributes; g.changed.attributes = {};",
    "static_cast<void>(Launch(g.kernel, g.shape, g.stream, HostSpan<void* const>(g.pointers)));",
    "static_cast<void>(Launch(g.kernel, g.shape, g.stream, std::array<float, 3>(), std::array<DevicePtr<int>, 2>(), DevicePtr<int*>()));",
    "static_cast<void>(Fill(g.view, 1));",
    "const runtime::CublasScope scope(g.blas, g.stream, g.bytes); const runtime::CusparseScope other(g.sparse, g.stream);",
    "static_cast<void>(HostSpan<const int>(HostSpan<int>(g.values)));",
    "const auto acquired = AcquireOn(g.device); if (acquired.ok()) { const ContextGuard guard(acquired); }",
    "static_cast<void>(g.cache.GetOrMake(g.context, [](const ContextRef&) -> absl::StatusOr<int> { return 1; }));",
    "const ContextGuard guard(g.context); static_cast<void>(g.cache.GetOrMake(guard, [](const ContextRef&) -> absl::StatusOr<int> { return 1; }));",
    "const ContextGuard guard(g.context); const ContextGuard again(guard.context()); const ExactGuard exact(guard);",
]


def said_of(statements, *flags):
    """What the compiler says of the statements, each in a function of its own."""
    text = PROLOGUE
    for index, statement in enumerate(statements):
        text += f'\n#line {index + 1} "statements"\nvoid Call{index}(const Given& g) {{ {statement} static_cast<void>(g); }}'
    every = ["-ferror-limit=0"] if "clang" in compiler else []
    return subprocess.run(
        [compiler, "-x", "c++", "-std=c++17", "-fvisibility=hidden", "-fsyntax-only", *every,
         *flags, f"-I{root / 'include'}", *system_includes(build),
         "-"], input=text + "\n", capture_output=True, text=True).stderr


failures = []
said = said_of([statement for statement, _ in REFUSED], "-w")  # a warning, too, would name the line
for index, (statement, words) in enumerate(REFUSED):
    if f"statements:{index + 1}:" not in said or words not in said:
        failures.append(f"it compiles, or the compiler does not say \"{words}\": {statement}")
said = said_of(ACCEPTED)
if said:
    failures.append(said)
for failure in failures:
    print(f"FAILED: {failure}")
print(f"cases: {len(REFUSED) + len(ACCEPTED) - len(failures)} passed, {len(failures)} failed, 0 skipped")
sys.exit(1 if failures else 0)
