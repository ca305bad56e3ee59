// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No context is created or attached to. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_SHARED_CONTEXT_H_
#define CUGUEST_LIB_NO_CUDA_SHARED_CONTEXT_H_

#include <cstdint>

#include "cuguest/shared_context.h"
#include "lib/no_cuda/error.h"

CUGUEST_BEGIN_NAMESPACE

inline SharedContext SharedContext::Create(Device /*device*/, unsigned /*flags*/) noexcept {
  SharedContext refused;
  refused.error_ = internal::NotSupported("create a shared context");
  return refused;
}

inline SharedContext SharedContext::Create(Device device, const Options& options) noexcept {
  return Create(device, options.flags);
}

inline SharedContext SharedContext::Attach(CUcontext /*context*/) noexcept {
  SharedContext refused;
  refused.error_ = internal::NotSupported("attach a context");
  return refused;
}

inline SharedContext SharedContext::Attach(const ContextRef& context) noexcept {
  return Attach(context.get());
}

inline SharedContext::SharedContext(const SharedContext& other) noexcept : error_(other.error_) {}
inline SharedContext::SharedContext(SharedContext&& other) noexcept : error_(other.error_) {}
inline SharedContext& SharedContext::operator=(SharedContext other) noexcept {
  error_ = other.error_;
  return *this;
}
inline SharedContext::~SharedContext() {}

inline Error SharedContext::error() const noexcept {
  return error_.ok() ? internal::HoldsNothing("hold a shared context") : error_;
}

inline SharedContext::Owner SharedContext::owner() const noexcept { return Owner::kNobody; }
inline std::uint64_t SharedContext::use_count() const noexcept { return 0; }
inline Error SharedContext::Release() noexcept {
  return internal::HoldsNothing("detach a shared context");
}

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_SHARED_CONTEXT_H_
