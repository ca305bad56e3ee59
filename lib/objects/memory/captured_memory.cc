// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/objects/memory/captured_memory.h"

#include "absl/strings/str_cat.h"
#include "cuguest/status.h"
#include "lib/core/driver_release.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/objects/stream/stream_call.h"
#include "lib/status/error_status.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

constexpr int kHasMemoryNodes = 11040;  // the driver's version

constexpr char kInstead[] =
    "; use memory that was allocated before the capture and is kept as long as the graph: the "
    "caller's, or a DeviceBuffer";

absl::Status CheckNodes(const ObjectDriver& driver, Device device, const std::string& doing) {
  if (driver.version != 0 && driver.version < kHasMemoryNodes) {
    return RefusalStatus(
        kCallRequiresNewerDriver, doing,
        absl::StrCat("a graph can allocate memory with ", VersionText(kHasMemoryNodes),
                     " or newer, and the driver has ", VersionText(driver.version), kInstead));
  }
  int has_pools = 0;
  CUGUEST_RETURN_IF_CUDA_ERROR(
      driver.DeviceGetAttribute(&has_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                                device.get()),
      doing, "whether the device has memory pools");
  if (has_pools != 0) return absl::OkStatus();
  return RefusalStatus(CUDA_ERROR_NOT_SUPPORTED, doing,
                       absl::StrCat("device ", device.get(), " has no memory pools", kInstead));
}

}  // namespace

absl::StatusOr<MemoryRange> AllocateInCapture(const ObjectDriver& driver, const StreamRef& stream,
                                              std::size_t bytes, const std::string& doing) {
  CUGUEST_ASSIGN_OR_RETURN(const Device device, stream.device());
  CUGUEST_RETURN_IF_ERROR(CheckNodes(driver, device, doing));
  CUdeviceptr pointer = 0;
  const CUresult code =
      CallRelaxed(driver, [&] { return driver.MemAllocAsync(&pointer, bytes, stream.get()); });
  if (code == CUDA_SUCCESS) return MemoryRange(pointer, bytes, ContextRef(), device);
  const bool cannot = code == CUDA_ERROR_NOT_SUPPORTED || code == CUDA_ERROR_INVALID_VALUE;
  return ToStatus(code, doing,
                  absl::StrCat(StreamText(stream.get()),
                               cannot ? ", whose graph cannot have memory of its own, as the graph "
                                        "of a child node or of a condition"
                                      : "",
                               cannot ? kInstead : ""));
}

CUGUEST_END_INTERNAL_NAMESPACE
