// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/launch.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/objects/launch/launch_check.h"
#include "lib/objects/object_driver.h"
#include "lib/objects/stream/stream_call.h"
#include "lib/status/driver_status.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

// The driver's own refusal of what looked right.
absl::Status DriverRefusal(CUresult code, const KernelState& kernel, const StreamRef& stream) {
  return StreamStatus(code, KernelText("launch", kernel).c_str(), stream);
}

CUresult AskIfCaptures(const ObjectDriver& driver, CUstream stream, bool* captures) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (driver.StreamIsCapturing == nullptr) return CUDA_SUCCESS;
  const CUresult code = driver.StreamIsCapturing(stream, &status);
  *captures = IsActive(status);
  return code;
}

// As RefuseShape(), but what was allowed and taken away by others is allowed again. That needs no
// context and does not invalidate a capture (cudasim/test/function_attribute_facts_test.cc).
[[gnu::noinline]] absl::Status RefuseOrAllow(const KernelInContext& launched,
                                             const LaunchShape& shape) {
  absl::Status refused = RefuseShape(launched, shape);
  if (refused.ok() || !WasAllowed(shape, launched.function)) return refused;
  const CUresult code = AllowDynamicShared(launched.driver, &launched.function, 0);
  return code == CUDA_SUCCESS ? RefuseShape(launched, shape) : refused;
}

// The driver has refused a launch with `code`, perhaps because others have changed a limit. OK if
// it is to be tried again: they have lowered what was allowed, and it is raised again.
[[gnu::noinline]] absl::Status Explain(CUresult code, const ObjectDriver& driver,
                                       KernelState& kernel, const LaunchShape& shape,
                                       const StreamRef& stream) {
  absl::Status refusal = DriverRefusal(code, kernel, stream);
  const FoundFunction found = KnownFunction(kernel, stream.context());
  const bool is_ours = code == CUDA_ERROR_INVALID_VALUE || code == CUDA_ERROR_INVALID_CLUSTER_SIZE;
  if (!is_ours || found.function == nullptr || !CanHaveChanged(shape, *found.function)) {
    return refusal;
  }
  const absl::Status refused = RefuseOrAllow({driver, kernel, *found.function}, shape);
  if (!refused.ok()) return refused;
  return WasAllowed(shape, *found.function) ? refused : refusal;
}

absl::Status LaunchWithAttributes(const KernelInContext& launched, const LaunchShape& shape,
                                  const StreamRef& stream, const LaunchParams& params) {
  CUGUEST_ASSIGN_OR_RETURN(const auto launch,
                           launched.driver.Require(&ObjectDriver::LaunchKernelEx));
  CUGUEST_RETURN_IF_ERROR(CheckAttributes(launched, shape));
  const LaunchConfig config(shape, stream.get());
  CUGUEST_RETURN_IF_ERROR(CheckConfig(launched, shape, stream, *config.get()));
  const auto issue = [&] {
    return launch(config.get(), launched.function.function, params.each, params.extra);
  };
  CUresult code = issue();
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  CUGUEST_RETURN_IF_ERROR(Explain(code, launched.driver, launched.kernel, shape, stream));
  code = issue();
  return code == CUDA_SUCCESS ? absl::OkStatus() : DriverRefusal(code, launched.kernel, stream);
}

// In a context that is alive, and current where the stream needs that. `ask(&captures)`: whether
// the stream does.
template <typename Ask>
inline absl::Status CheckAndLaunch(const ObjectDriver& driver, KernelState& kernel,
                                   const LaunchShape& shape, const StreamRef& stream,
                                   const LaunchParams& params, const Ask& ask) {
  // Not by FindFunction(): its StatusOr takes 15 ns.
  FoundFunction found = KnownFunction(kernel, stream.context());
  if (__builtin_expect(found.function == nullptr, 0)) {
    CUGUEST_ASSIGN_OR_RETURN(found, FindFunctionSlowly(kernel, stream.context()));
  }
  const KernelInContext launched = {driver, kernel, *found.function};
  bool must_ask = !FitsLimits(shape, launched.function);
  if (!must_ask && CanHaveChanged(shape, launched.function)) {
    const CUresult asked = ask(&must_ask);
    if (__builtin_expect(asked != CUDA_SUCCESS, 0)) return DriverRefusal(asked, kernel, stream);
  }
  if (__builtin_expect(must_ask, 0)) CUGUEST_RETURN_IF_ERROR(RefuseOrAllow(launched, shape));
  if (__builtin_expect(!TakesParams(kernel, params), 0)) {
    CUGUEST_RETURN_IF_ERROR(CheckParams(launched, params));
  }
  if (params.devices != nullptr) CUGUEST_RETURN_IF_ERROR(CheckDevices(launched, params));
  if (__builtin_expect(!IsPlain(shape), 0)) {
    return LaunchWithAttributes(launched, shape, stream, params);
  }
  // Not kept over the launch: to count a pin down right behind it waits until the driver's
  // writes to the device are out. The kernel keeps its code, and the context
  // is alive, or the launch itself would be undefined.
  const CUfunction function = launched.function.function;
  found.pin = {};
  const auto launch = [&] {
    return driver.LaunchKernel(function, shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x,
                               shape.block.y, shape.block.z,
                               static_cast<unsigned>(shape.shared_bytes), stream.get(), params.each,
                               params.extra);
  };
  CUresult code = launch();
  if (__builtin_expect(code == CUDA_SUCCESS, 1)) return absl::OkStatus();
  CUGUEST_RETURN_IF_ERROR(Explain(code, driver, kernel, shape, stream));
  code = launch();
  return code == CUDA_SUCCESS ? absl::OkStatus() : DriverRefusal(code, kernel, stream);
}

// The same on a stream that means the current context, which is made current for it; unless
// the driver would end somebody's capture for it.
[[gnu::noinline]] absl::Status EnterStreamAndLaunch(const ObjectDriver& driver, KernelState& kernel,
                                                    const LaunchShape& shape,
                                                    const StreamRef& stream,
                                                    const LaunchParams& params) {
  const StreamCall in(driver, stream);
  if (in.refusal() != CUDA_SUCCESS && !in.capture().is_active()) {
    return DriverRefusal(in.refusal(), kernel, stream);
  }
  return CheckAndLaunch(driver, kernel, shape, stream, params, [&in](bool* captures) {
    *captures = in.capture().is_active();
    return CUDA_SUCCESS;
  });
}

// How many threads a block of a row has. Where there is no kernel or no stream, any: the launch
// says so.
absl::StatusOr<unsigned> RowBlock(const Kernel& kernel, const ContextRef& context) {
  constexpr unsigned kUsual = 256;
  const KernelState* const state = KernelAccess::Of(kernel);
  if (state == nullptr || context.get() == nullptr) return kUsual;
  FoundFunction found = KnownFunction(*state, context);
  if (found.function == nullptr) {
    CUGUEST_ASSIGN_OR_RETURN(found, FindFunctionSlowly(*state, context));
  }
  const std::uint64_t required = found.function->required_block;
  if (SizeOf(required, 1) == 1 && SizeOf(required, 2) == 1) return SizeOf(required, 0);
  return std::min(kUsual, static_cast<unsigned>(found.function->max_threads_per_block));
}

}  // namespace

absl::Status LaunchWith(const Kernel& kernel, const LaunchShape& shape, const StreamRef& stream,
                        const LaunchParams& params) {
  CUresult code = CUDA_SUCCESS;
  const ObjectDriver* driver = TryObjectDriver(&code);
  if (__builtin_expect(driver == nullptr, 0)) {
    CUGUEST_ASSIGN_OR_RETURN(driver, ObjectDriver::Get());
  }
  KernelState* const state = KernelAccess::Of(kernel);
  if (__builtin_expect(state == nullptr, 0)) return NoKernel("launch");
  if (MeansCurrent(stream.get())) {
    return EnterStreamAndLaunch(*driver, *state, shape, stream, params);
  }
  code = CheckAlive(stream.context());
  if (__builtin_expect(code != CUDA_SUCCESS, 0)) return DriverRefusal(code, *state, stream);
  return CheckAndLaunch(*driver, *state, shape, stream, params, [&](bool* captures) {
    return AskIfCaptures(*driver, stream.get(), captures);
  });
}

absl::StatusOr<LaunchShape> ShapeForElements(const Kernel& kernel, std::size_t count,
                                             const StreamRef& stream) {
  CUGUEST_ASSIGN_OR_RETURN(const unsigned block, RowBlock(kernel, stream.context()));
  return LaunchShape::ForElements(count, block);
}

}  // namespace internal

absl::Status Launch(const Kernel& kernel, const LaunchShape& shape, const StreamRef& stream,
                    const ParamBuffer& params) {
  if (!params.can_be_packed()) {
    std::vector<void*> each;
    return internal::LaunchWith(kernel, shape, stream, internal::ParamsOneByOne(params, &each));
  }
  std::size_t bytes = params.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<unsigned char*>(params.data()),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  // The driver refuses a buffer of no bytes, also of a kernel that takes none.
  return internal::LaunchWith(kernel, shape, stream,
                              {nullptr, bytes == 0 ? nullptr : extra, params.parameters().data(),
                               params.parameters().size(), nullptr});
}

absl::Status Launch(const Kernel& kernel, const LaunchShape& shape, const StreamRef& stream,
                    HostSpan<void* const> params) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (params.data() != nullptr && params.data()[i] != nullptr) continue;
    const internal::KernelState* const state = internal::KernelAccess::Of(kernel);
    if (state == nullptr) return internal::NoKernel("launch");
    return absl::InvalidArgumentError(absl::StrCat(internal::KernelText("launch", *state),
                                                   ": the pointer to parameter ", i + 1, " of ",
                                                   params.size(), " is null"));
  }
  return internal::LaunchWith(
      kernel, shape, stream,
      {const_cast<void**>(params.data()), nullptr, nullptr, params.size(), nullptr});
}

absl::StatusOr<LaunchShape> LaunchShape::ForElements(std::size_t count, unsigned block) {
  const auto text = [&](const auto&... why) {
    return absl::StrCat("shape a launch for ", count, " elements in blocks of ", block,
                        " threads: ", why...);
  };
  if (count == 0) return absl::InvalidArgumentError(text("there is nothing to launch"));
  if (block == 0) return absl::InvalidArgumentError(text("a block has at least one"));
  constexpr std::size_t kMost = 0x7fffffff;  // of every device since compute capability 3.0
  const std::size_t blocks = (count - 1) / block + 1;
  if (blocks > kMost) {
    return absl::OutOfRangeError(text("that is ", blocks, " blocks, and a grid has at most ", kMost,
                                      "; let each thread do more than one"));
  }
  return LaunchShape(static_cast<unsigned>(blocks), block);
}

CUGUEST_END_NAMESPACE
