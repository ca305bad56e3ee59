// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library that embeds cuguest, compiled by matrix_test.py once for every row of its table. ROW is
// the row's number, and the size of what this library caches. What it caches has a name of its own
// (that two libraries with visible symbols call two classes the same is for them to avoid), but in
// libraries that are loaded with RTLD_LOCAL, which need not care: all call theirs `Kernels`.

#include <cuda.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/driver.h"
#include "cuguest/incident.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_ptr.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/stream.h"
#include "cuguest/per_context.h"
#include "cuguest/status.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#if IS_LOCAL
#define CACHED Kernels
#else
#define CACHED JOIN(Kernels, ROW)
#endif

struct CACHED {
  int values[16 * ROW + 1];
  void Leak() noexcept {}
};

namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;

CUcontext g_leaked = nullptr;
unsigned long long g_caused = 0;

void LeakAPush() {
  static_cast<void>((*cuguest::Driver::Get())->CtxPushCurrent(g_leaked));
  ++g_caused;
}

CUcontext Current() {
  CUcontext current = nullptr;
  static_cast<void>((*cuguest::Driver::Get())->CtxGetCurrent(&current));
  return current;
}

const char* Guard(const ContextRef& context) {
  {
    ContextGuard guard(context);
    if (!guard.ok() || Current() != context.get()) return "a guard does not enter";
    LeakAPush();
    if (guard.Reassert() != CUDA_SUCCESS) return "a guard does not reassert";
    LeakAPush();
  }
  std::optional<ContextGuard> optional;
  optional.emplace(context.get());
  if (!optional->ok() || Current() != context.get()) return "an optional guard does not enter";
  optional.reset();
  return nullptr;
}

const char* Cache(const ContextRef& context) {
  static auto& cache = *new cuguest::PerContext<CACHED>;
  const auto kernels = cache.GetOrMake(context, [](const ContextRef&) -> absl::StatusOr<CACHED> {
    LeakAPush();
    CACHED made;
    for (int& value : made.values) value = ROW;
    return made;
  });
  if (!kernels.ok()) return "nothing is cached";
  if ((*kernels)->values[16 * ROW] != ROW) return "what is cached is another library's";
  return nullptr;
}

const char* Memory(const ContextRef& context) {
  std::vector<float> numbers(100 + ROW, ROW), back(numbers.size());
  absl::StatusOr<cuguest::DeviceBuffer<float>> buffer =
      cuguest::DeviceBuffer<float>::Allocate(context, numbers.size());
  if (!buffer.ok()) return "no memory is allocated";
  if (!cuguest::Upload(buffer->view(), numbers).ok() ||
      !cuguest::Download(buffer->view(), back).ok() || back != numbers) {
    return "a copy is another";
  }
  const absl::StatusOr<cuguest::StreamRef> stream =
      cuguest::StreamRef::Borrow(CU_STREAM_PER_THREAD);
  const absl::StatusOr<cuguest::LaunchShape> shape = cuguest::LaunchShape::ForElements(100, 32);
  if (!shape.ok()) return "there is no shape";
  if (stream.ok() && cuguest::Launch(cuguest::Kernel(), *shape, *stream, ROW,
                                     cuguest::DevicePtr<float>(buffer->view()))
                         .ok()) {
    return "no kernel is launched";
  }
  if (!buffer->Release().ok()) return "memory is not freed";
  return nullptr;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// Works in `context`, while callees leave `leaked` on the stack. nullptr, or what is wrong.
EXPORT const char* JOIN(Run, ROW)(CUcontext context, CUcontext leaked) {
  g_leaked = leaked;
  const auto driver = cuguest::Driver::GetInitialized();
  if (!driver.ok()) return "no driver";
  const CUcontext before = Current();
  const ContextRef ref = ContextRef::Borrow(context);
  for (const auto& part : {&Guard, &Cache, &Memory}) {
    if (const char* wrong = part(ref); wrong != nullptr) return wrong;
    if (Current() != before) return "the caller's context is not current";
  }
  return nullptr;
}

// What callees of this library did, and what it has counted.
EXPORT unsigned long long JOIN(Caused, ROW)() { return g_caused; }
EXPORT unsigned long long JOIN(Counted, ROW)() { return cuguest::IncidentCount(); }
