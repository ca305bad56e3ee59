// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/imported_buffer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/memory.h"
#include "lib/objects/memory/in_context.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

// How memory that has no handle is exported.
const char* OtherWay(MemoryDescription::Kind kind) {
  switch (kind) {
    case MemoryDescription::Kind::kPool:
      return "; that of a pool by cuMemPoolExportToShareableHandle and cuMemPoolExportPointer";
    case MemoryDescription::Kind::kVirtual:
      return "; virtual memory by cuMemExportToShareableHandle";
    default:
      return "";
  }
}

}  // namespace

absl::StatusOr<ExportedMemory> ExportedMemory::OfRange(const internal::MemoryRange& range) {
  if (range.bytes == 0) return absl::InvalidArgumentError("export memory: the view is empty");
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_ASSIGN_OR_RETURN(const auto call, driver->Require(&ObjectDriver::IpcGetMemHandle));
  CUGUEST_ASSIGN_OR_RETURN(const MemoryDescription memory, Describe(range.pointer));
  const std::string doing = absl::StrCat("export ", range.bytes, " bytes of ", memory.ToString());
  if (memory.kind != MemoryDescription::Kind::kDevice) {
    const bool has_owner = range.context.get() != nullptr;
    const CUresult gone = has_owner ? range.context.Check() : CUDA_SUCCESS;
    CUGUEST_RETURN_IF_CUDA_ERROR(gone, doing, "the memory is gone with its context");
    return absl::InvalidArgumentError(absl::StrCat(
        doing, ": only memory of cuMemAlloc and cudaMalloc has a handle", OtherWay(memory.kind)));
  }
  ExportedMemory exported;
  exported.offset = memory.offset();
  exported.bytes = range.bytes;
  const internal::EndOutcome outcome =
      internal::CallIn(range.context, [&] { return call(&exported.handle, memory.base); });
  CUGUEST_RETURN_IF_CUDA_ERROR(
      outcome.code, doing,
      outcome.code != CUDA_ERROR_INVALID_VALUE
          ? outcome.reason
          : "the driver exports no variable of a module, and nothing that was imported");
  return exported;
}

CUGUEST_END_NAMESPACE
