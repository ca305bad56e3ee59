// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the facts of green contexts share.

#ifndef CUDASIM_TEST_GREEN_H_
#define CUDASIM_TEST_GREEN_H_

#include "test/facts.h"

namespace cudasim_facts {

inline constexpr unsigned kPart = 16;  // multiprocessors

inline CUdevResource DeviceResource() {
  CUdevResource resource = {};
  OK(RAW(cuDeviceGetDevResource)(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
  return resource;
}

inline CUdevResourceDesc Description() {
  const CUdevResource whole = DeviceResource();
  CUdevResource part = {};
  unsigned count = 1;
  CUdevResourceDesc description = nullptr;
  OK(RAW(cuDevSmResourceSplitByCount)(&part, &count, &whole, nullptr, 0, kPart));
  OK(RAW(cuDevResourceGenerateDesc)(&description, &part, 1));
  return description;
}

inline CUgreenCtx Create() {
  CUgreenCtx green = nullptr;
  OK(RAW(cuGreenCtxCreate)(&green, Description(), 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

inline CUcontext ContextOf(CUgreenCtx green) {
  CUcontext context = nullptr;
  OK(RAW(cuCtxFromGreenCtx)(&context, green));
  return context;
}

// A green context and a retain of its primary; neither is current.
struct Green {
  Green() { OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0)); }
  ~Green() {
    SetStack({});
    if (raw != nullptr) Destroy();
    OK(RAW(cuDevicePrimaryCtxRelease)(0));
    BOOST_TEST(!IsActive(0));
  }
  void Destroy() {
    OK(RAW(cuGreenCtxDestroy)(raw));
    raw = nullptr;
  }
  CUstream CreateStream() const {
    CUstream stream = nullptr;
    OK(RAW(cuGreenCtxStreamCreate)(&stream, raw, CU_STREAM_NON_BLOCKING, 0));
    return stream;
  }

  CUcontext primary = nullptr;
  CUgreenCtx raw = Create();
  CUcontext context = ContextOf(raw);
};

inline CUstream CreateStreamIn(CUcontext context) {
  CUstream stream = nullptr;
  SetStack({context});
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  SetStack({});
  return stream;
}

inline CUevent CreateEventIn(CUcontext context) {
  CUevent event = nullptr;
  SetStack({context});
  OK(RAW(cuEventCreate)(&event, 0));
  SetStack({});
  return event;
}

}  // namespace cudasim_facts

#endif  // CUDASIM_TEST_GREEN_H_
