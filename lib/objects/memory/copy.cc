// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/copy.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/objects/driver.h"
#include "lib/acquire/pointer_attributes.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/objects/memory/run_copy.h"
#include "lib/objects/memory/trial_graph.h"
#include "lib/objects/stream/stream_call.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

absl::Status CheckEnds(const CopyEnd& to, const CopyEnd& from) {
  if (to.count != from.count) {
    return absl::InvalidArgumentError(
        absl::StrCat("copy ", from.count, " elements from ", EndText(from), " to ", to.count,
                     " at ", EndText(to), ": take a Subview of the longer end"));
  }
  for (const CopyEnd* end : {&to, &from}) {
    if (end->count == 0 || end->address != 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("copy ", end->count, " elements: the host's end is null"));
  }
  return absl::OkStatus();
}

// `call`, or in a stream `async_call`.
template <typename DriverCall, typename AsyncCall, typename... Values>
CUresult Call(DriverCall call, AsyncCall async_call, const StreamRef* stream, Values... values) {
  return stream == nullptr ? call(values...) : async_call(values..., stream->get());
}

// What has to be done, with the words for it when it fails.
//
// Each form of a copy takes a device address only for what the driver knows, so that memory
// that was freed is refused, where cuMemcpy would read it as the host's.
struct Task {
  CopyEnd to;
  CopyEnd from;            // of a fill: nothing
  const FillValue* value;  // of a fill

  std::size_t bytes() const { return to.count * to.size; }
  std::string Text() const {
    return value != nullptr
               ? absl::StrCat("fill ", bytes(), " bytes at ", EndText(to))
               : absl::StrCat("copy ", bytes(), " bytes from ", EndText(from), " to ", EndText(to));
  }
  const MemoryRange& home() const { return HomeOf(to, from); }
  bool is_fill() const { return value != nullptr; }
  std::array<const MemoryRange*, 2> ranges() const { return {to.range, from.range}; }
  CUresult Do(const ObjectDriver& driver, const StreamRef* stream) const {
    if (value == nullptr) return Copy(driver, stream);
    const CUresult code = stream != nullptr ? CheckFill(driver, *stream) : CUDA_SUCCESS;
    return code == CUDA_SUCCESS ? Fill(driver, stream) : code;
  }

  // cuMemcpyDtoH returns when the copy is done, to pageable and to pinned memory (CUDA Driver API,
  // "API synchronization behavior"). That does not say so of managed and of virtual memory, which
  // the host's end may be; virtual memory may go on in a mapping of a device's.
  CUresult Wait(const ObjectDriver& driver) const {
    if (value != nullptr || to.range != nullptr) return WaitForStream0(driver);
    PointerAttributes host;
    const CUresult code = ReadAttributes(driver, to.address, &host);
    if (code != CUDA_SUCCESS) return code;
    const bool is_of_host = host.is_managed == 0 && !host.IsVirtual() &&
                            (!host.IsKnown() || host.type == CU_MEMORYTYPE_HOST);
    return is_of_host ? CUDA_SUCCESS : WaitForStream0(driver);
  }

 private:
  static void* ToHost(const CopyEnd& end) { return reinterpret_cast<void*>(end.address); }

  CUresult Copy(const ObjectDriver& driver, const StreamRef* stream) const {
    if (to.range == nullptr) {
      return Call(driver.MemcpyDtoH, driver.MemcpyDtoHAsync, stream, ToHost(to), from.address,
                  bytes());
    }
    if (from.range == nullptr) {
      return Call(driver.MemcpyHtoD, driver.MemcpyHtoDAsync, stream, to.address, ToHost(from),
                  bytes());
    }
    return Call(driver.MemcpyDtoD, driver.MemcpyDtoDAsync, stream, to.address, from.address,
                bytes());
  }

  // What the driver says of the fill at the call, where it is not in a capture. In one it takes any
  // memory, and refuses another device's when the whole graph is instantiated
  // (cudasim/test/two_devices_facts_test.cc). Whether the stream's device may write that, for which
  // there are several reasons, only the driver knows.
  CUresult CheckFill(const ObjectDriver& driver, const StreamRef& stream) const {
    if (to.range->context == stream.context()) return CUDA_SUCCESS;
    CUdevice here = 0;
    CUresult code = driver.CtxGetDevice(&here);
    if (code != CUDA_SUCCESS || here == to.range->device.get()) return code;
    constexpr CUresult kCaptures = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    code = CheckNotCapturing(stream.get(), kCaptures);
    if (code != kCaptures) return code;
    if (driver.GraphInstantiateWithFlags == nullptr) return CUDA_SUCCESS;  // below CUDA 11.4
    return TrialGraph(driver).Instantiate([&](CUstream trial) {
      const StreamRef alone = StreamRef::Borrow(trial, stream.context());
      return Fill(driver, &alone);
    });
  }

  CUresult Fill(const ObjectDriver& driver, const StreamRef* stream) const {
    const std::size_t count = bytes() / value->size;
    switch (value->size) {
      case 1:
        return Call(driver.MemsetD8, driver.MemsetD8Async, stream, to.address,
                    static_cast<unsigned char>(value->bits), count);
      case 2:
        return Call(driver.MemsetD16, driver.MemsetD16Async, stream, to.address,
                    static_cast<unsigned short>(value->bits), count);
      default:
        return Call(driver.MemsetD32, driver.MemsetD32Async, stream, to.address, value->bits,
                    count);
    }
  }
};

}  // namespace

absl::Status CopyElements(const CopyEnd& to, const CopyEnd& from, const StreamRef* stream) {
  CUGUEST_RETURN_IF_ERROR(CheckEnds(to, from));
  if (to.count == 0) return absl::OkStatus();
  return RunCopy(Task{to, from, nullptr}, stream);
}

absl::Status CopyElementsAndWait(const CopyEnd& to, const CopyEnd& from, const StreamRef& stream) {
  CUGUEST_RETURN_IF_ERROR(CheckEnds(to, from));
  if (to.count == 0) return absl::OkStatus();
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  // Before anything is submitted: to wait may be refused.
  const CUresult refusal = StreamCall(*driver, stream).refusal();
  if (refusal != CUDA_SUCCESS) return StreamStatus(refusal, "wait for a stream", stream);
  CUGUEST_RETURN_IF_ERROR(RunCopy(Task{to, from, nullptr}, &stream));
  return stream.Synchronize();
}

absl::Status FillElements(const CopyEnd& to, const FillValue& value, const StreamRef* stream) {
  return to.count == 0 ? absl::OkStatus() : RunCopy(Task{to, {}, &value}, stream);
}

CUGUEST_END_INTERNAL_NAMESPACE
