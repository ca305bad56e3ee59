// SPDX-License-Identifier: Apache-2.0

#include "cuguest/launch.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "lib/context/special_stream.h"
#include "lib/core/driver_access.h"
#include "lib/launch/launch_check.h"
#include "lib/launch/launch_config.h"
#include "lib/module/code.h"
#include "lib/stream/stream_call.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

// In one of the two forms that the driver takes them in; the other is null.
struct Params {
  void** each;
  void** extra;
};

// The driver's own refusal of what looked right.
absl::Status DriverRefusal(CUresult code, const KernelState& kernel, const StreamRef& stream) {
  return StreamStatus(code, LaunchText(kernel).c_str(), stream);
}

absl::Status LaunchWithAttributes(const Driver& driver, const KernelState& kernel,
                                  const LaunchShape& shape, const StreamRef& stream,
                                  const Params& params, const FunctionInContext& function) {
  const auto launch = driver.Require(&Driver::LaunchKernelEx);
  if (!launch.ok()) return launch.status();
  absl::Status status = CheckAttributes(kernel, shape);
  if (!status.ok()) return status;
  const LaunchConfig config(shape, stream.get());
  status = CheckConfig(driver, kernel, shape, stream, function, *config.get());
  if (!status.ok()) return status;
  const CUresult code = (*launch)(config.get(), function.function, params.each, params.extra);
  return code == CUDA_SUCCESS ? absl::OkStatus() : DriverRefusal(code, kernel, stream);
}

// In a context that is alive, and current where the stream needs that. `check` looks at the
// parameters.
template <typename Check>
inline absl::Status CheckAndLaunch(const Driver& driver, KernelState& kernel,
                                   const LaunchShape& shape, const StreamRef& stream,
                                   const Params& params, const Check& check) {
  // Not by FindFunction(): its StatusOr takes 15 ns.
  FoundFunction found = KnownFunction(kernel, stream.context());
  if (__builtin_expect(found.function == nullptr, 0)) {
    absl::StatusOr<FoundFunction> made = FindFunctionSlowly(kernel, stream.context());
    if (!made.ok()) return made.status();
    found = *std::move(made);
  }
  FunctionInContext& function = *found.function;
  if (__builtin_expect(!FitsLimits(shape, function), 0)) {
    absl::Status status = RefuseShape(driver, kernel, shape, &function);
    if (!status.ok()) return status;
  }
  if (absl::Status status = check(CheckedKernel{driver, kernel, function.function});
      __builtin_expect(!status.ok(), 0)) {
    return status;
  }
  if (__builtin_expect(!IsPlain(shape), 0)) {
    return LaunchWithAttributes(driver, kernel, shape, stream, params, function);
  }
  // Not kept over the launch: to count a pin down right behind it waits until the driver's
  // writes to the device are out. The kernel keeps its code, and the context
  // is alive, or the launch itself would be undefined.
  const CUfunction launched = function.function;
  found.pin = {};
  const CUresult code =
      driver.LaunchKernel(launched, shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x,
                          shape.block.y, shape.block.z, static_cast<unsigned>(shape.shared_bytes),
                          stream.get(), params.each, params.extra);
  if (__builtin_expect(code == CUDA_SUCCESS, 1)) return absl::OkStatus();
  return DriverRefusal(code, kernel, stream);
}

// The same on a stream that means the current context, which is made current for it; unless
// the driver would end somebody's capture for it.
template <typename Check>
[[gnu::noinline]] absl::Status EnterStreamAndLaunch(const Driver& driver, KernelState& kernel,
                                                    const LaunchShape& shape,
                                                    const StreamRef& stream, const Params& params,
                                                    const Check& check) {
  const StreamCall in(driver, stream);
  if (in.refusal() != CUDA_SUCCESS && !in.capture().is_active()) {
    return DriverRefusal(in.refusal(), kernel, stream);
  }
  return CheckAndLaunch(driver, kernel, shape, stream, params, check);
}

template <typename Check>
inline absl::Status ResolveAndLaunch(const Kernel& kernel, const LaunchShape& shape,
                                     const StreamRef& stream, const Params& params,
                                     const Check& check) {
  CUresult code = CUDA_SUCCESS;
  const Driver* const driver = TryDriver(&code);
  if (__builtin_expect(driver == nullptr, 0)) return Driver::Get().status();
  KernelState* const state = KernelAccess::Of(kernel);
  if (__builtin_expect(state == nullptr, 0)) return NoKernel("launch");
  if (MeansCurrent(stream.get())) {
    return EnterStreamAndLaunch(*driver, *state, shape, stream, params, check);
  }
  code = CheckLife(stream.context());
  if (__builtin_expect(code != CUDA_SUCCESS, 0)) return DriverRefusal(code, *state, stream);
  return CheckAndLaunch(*driver, *state, shape, stream, params, check);
}

// One by one, out of their buffer.
absl::Status LaunchUnpacked(const Kernel& kernel, const LaunchShape& shape, const StreamRef& stream,
                            const unsigned char* data, const ParamLayoutView& layout) {
  std::vector<const void*> values;
  for (std::size_t i = 0; i < layout.count; ++i) values.push_back(data + layout.places[i].offset);
  return LaunchValues(kernel, shape, stream, values.data(), layout);
}

absl::Status NullParameter(const Kernel& kernel, std::size_t index) {
  const KernelState* const state = KernelAccess::Of(kernel);
  if (state == nullptr) return NoKernel("launch");
  return absl::InvalidArgumentError(
      absl::StrCat(LaunchText(*state), ": the pointer to parameter ", index, " is null"));
}

}  // namespace

std::string LaunchText(const KernelState& kernel) {
  return kernel.name.empty() ? "launch a borrowed kernel"
                             : absl::StrCat("launch \"", kernel.name, "\"");
}

absl::Status LaunchValues(const Kernel& kernel, const LaunchShape& shape, const StreamRef& stream,
                          const void* const* values, const ParamLayoutView& layout) {
  // The driver reads through them.
  const Params params = {const_cast<void**>(values), nullptr};
  return ResolveAndLaunch(kernel, shape, stream, params, [&](const CheckedKernel& checked) {
    return __builtin_expect(checked.kernel.params.AreSizes(layout), 1)
               ? absl::OkStatus()
               : CheckValues(checked, layout);
  });
}

absl::Status LaunchPacked(const Kernel& kernel, const LaunchShape& shape, const StreamRef& stream,
                          const unsigned char* data, std::size_t bytes,
                          const ParamLayoutView& layout) {
  if (!layout.can_be_packed) return LaunchUnpacked(kernel, shape, stream, data, layout);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<unsigned char*>(data),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  // The driver refuses a buffer of no bytes, also of a kernel that takes none.
  const Params params = {nullptr, bytes == 0 ? nullptr : extra};
  return ResolveAndLaunch(kernel, shape, stream, params, [&](const CheckedKernel& checked) {
    return __builtin_expect(checked.kernel.params.ArePlaces(layout), 1)
               ? absl::OkStatus()
               : CheckPacked(checked, layout);
  });
}

namespace {

// How many threads a block of a row has. Where the kernel cannot be found, any: the launch, which
// looks for it again, says why.
unsigned RowBlock(const Kernel& kernel, const ContextRef& context) {
  constexpr unsigned kUsual = 256;
  const KernelState* const state = KernelAccess::Of(kernel);
  if (state == nullptr) return kUsual;
  FoundFunction found = KnownFunction(*state, context);
  if (found.function == nullptr && kernel.FunctionIn(context).ok()) {
    found = KnownFunction(*state, context);
  }
  if (found.function == nullptr) return kUsual;
  const std::uint64_t required = found.function->required_block;
  if (SizeOf(required, 1) == 1 && SizeOf(required, 2) == 1) return SizeOf(required, 0);
  return std::min(kUsual, static_cast<unsigned>(found.function->max_threads_per_block));
}

}  // namespace

absl::StatusOr<LaunchShape> ShapeForElements(const Kernel& kernel, std::size_t count,
                                             const StreamRef& stream) {
  return LaunchShape::ForElements(count, RowBlock(kernel, stream.context()));
}

}  // namespace internal

absl::Status Launch(const Kernel& kernel, const LaunchShape& shape, const StreamRef& stream,
                    HostSpan<void* const> params) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (params.data() == nullptr || params.data()[i] == nullptr)
      return internal::NullParameter(kernel, i);
  }
  const internal::Params each = {const_cast<void**>(params.data()), nullptr};
  return internal::ResolveAndLaunch(kernel, shape, stream, each,
                                    [&](const internal::CheckedKernel& checked) {
                                      return checked.kernel.params.AreCount(params.size())
                                                 ? absl::OkStatus()
                                                 : internal::CheckCount(checked, params.size());
                                    });
}

CUGUEST_END_NAMESPACE
