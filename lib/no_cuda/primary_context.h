// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No primary context is retained. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_PRIMARY_CONTEXT_H_
#define CUGUEST_LIB_NO_CUDA_PRIMARY_CONTEXT_H_

#include "cuguest/primary_context.h"
#include "lib/no_cuda/error.h"

CUGUEST_BEGIN_NAMESPACE

inline PrimaryContext PrimaryContext::Retain(Device device) noexcept {
  PrimaryContext refused;
  refused.device_ = device;
  refused.error_ = internal::NotSupported("retain a primary context");
  return refused;
}

inline PrimaryContext PrimaryContext::RetainIfActive(Device device) noexcept {
  return Retain(device);
}

inline PrimaryContext::State PrimaryContext::Query(Device /*device*/) noexcept {
  State state;
  state.failure = internal::NotSupported("query a primary context");
  return state;
}

inline PrimaryContext& PrimaryContext::operator=(PrimaryContext&& other) noexcept {
  device_ = other.device_;
  error_ = other.error_;
  return *this;
}

inline PrimaryContext::~PrimaryContext() {}

inline Error PrimaryContext::error() const noexcept {
  return error_.ok() ? internal::HoldsNothing("hold a primary context") : error_;
}

inline bool PrimaryContext::WasReset() const noexcept { return false; }

inline Error PrimaryContext::Release() noexcept { return {}; }

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_PRIMARY_CONTEXT_H_
