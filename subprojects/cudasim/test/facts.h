// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the *_facts_test.cc share. They say what a driver does, as measured on an
// NVIDIA H100 and on two H200, driver 580.159.04; the simulation must do the same,
// and the same binaries run on a real driver. Nothing here calls what is undefined
// there.

#ifndef CUDASIM_TEST_FACTS_H_
#define CUDASIM_TEST_FACTS_H_

#include <cuda.h>

#include <cstring>
#include <thread>
#include <vector>

#include "test/support/raw_driver.h"
#include "test/support/test.h"

#define OK(call) BOOST_CHECK_EQUAL((call), CUDA_SUCCESS)
#define IS(call, error) BOOST_CHECK_EQUAL((call), CUDA_ERROR_##error)

namespace cudasim_facts {

using cudasim_test::GetStack;
using cudasim_test::OwnContext;
using cudasim_test::SetStack;
using Entries = std::vector<CUcontext>;

// A value that the enumeration does not have; a cast would be undefined.
template <typename Enum>
Enum OutOfRange(int value) {
  static_assert(sizeof(Enum) == sizeof(value));
  Enum result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}

inline CUcontext CurrentContext() {
  CUcontext context = nullptr;
  OK(RAW(cuCtxGetCurrent)(&context));
  return context;
}

inline unsigned long long IdOf(CUcontext context) {
  unsigned long long id = 0;
  OK(RAW(cuCtxGetId)(context, &id));
  return id;
}

// Whether the primary context of `device` is active.
inline bool IsActive(CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  OK(RAW(cuDevicePrimaryCtxGetState)(device, &flags, &active));
  return active != 0;
}

template <typename Function>
void OnAnotherThread(const Function& function) {
  std::thread(function).join();
}

// A user context that was destroyed from another thread and is the only entry of this
// thread's stack. Pop it.
inline CUcontext PushDeadContext() {
  OwnContext context;
  const CUcontext dead = context.release();
  OK(RAW(cuCtxPushCurrent)(dead));
  OnAnotherThread([=] { OK(RAW(cuCtxDestroy)(dead)); });
  return dead;
}

// What cuPointerGetAttribute says. A value that it does not write stays.
template <typename T>
CUresult GetAttribute(CUpointer_attribute attribute, CUdeviceptr pointer, T* value) {
  return RAW(cuPointerGetAttribute)(value, attribute, pointer);
}

// The same, where it must succeed.
template <typename T>
T Attribute(CUpointer_attribute attribute, CUdeviceptr pointer) {
  T value = {};
  OK(GetAttribute(attribute, pointer, &value));
  return value;
}

// What cuPointerGetAttributes says; it succeeds for every pointer.
template <typename T>
T PluralAttribute(CUpointer_attribute attribute, CUdeviceptr pointer, T before = {}) {
  void* data = &before;
  OK(RAW(cuPointerGetAttributes)(1, &attribute, &data, pointer));
  return before;
}

inline bool IsKnown(CUdeviceptr pointer) {
  unsigned type = 0;
  return GetAttribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer, &type) == CUDA_SUCCESS;
}

// A kernel that does nothing, and one that stores its second parameter through the first.
inline constexpr char kPtx[] = R"(.version 7.0
.target sm_50
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry store(.param .u64 to, .param .u32 value)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

}  // namespace cudasim_facts

#endif  // CUDASIM_TEST_FACTS_H_
