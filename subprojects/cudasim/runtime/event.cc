// SPDX-License-Identifier: Apache-2.0
//
// Events.

#include "runtime/api.h"
#include "runtime/driver.h"
#include "runtime/stream.h"

namespace cudasim::runtime {

cudaError_t EventCreate(cudaEvent_t* event) {
  return EventCreateWithFlags(event, cudaEventDefault);
}

// The flags have the driver's numbers.
cudaError_t EventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (event == nullptr) return cudaErrorInvalidValue;
  return ToError(Driver().cuEventCreate(event, flags));
}

cudaError_t EventDestroy(cudaEvent_t event) { return ToError(Driver().cuEventDestroy(event)); }

cudaError_t EventRecord(cudaEvent_t event, cudaStream_t stream) {
  return ToError(Driver().cuEventRecord(event, ToDriver(stream)));
}

cudaError_t EventQuery(cudaEvent_t event) { return ToError(Driver().cuEventQuery(event)); }

cudaError_t EventSynchronize(cudaEvent_t event) {
  return ToError(Driver().cuEventSynchronize(event));
}

cudaError_t EventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (milliseconds == nullptr) return cudaErrorInvalidValue;
  return ToError(Driver().cuEventElapsedTime(milliseconds, start, end));
}

}  // namespace cudasim::runtime
