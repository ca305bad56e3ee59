// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No context is acquired. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_ACQUIRE_H_
#define CUGUEST_LIB_NO_CUDA_ACQUIRE_H_

#include <cstddef>

#include "cuguest/acquire.h"
#include "lib/no_cuda/error.h"
#include "lib/no_cuda/primary_context.h"

CUGUEST_BEGIN_NAMESPACE

inline Acquired::Acquired(PrimaryContext primary, Source source) noexcept
    : source_(source), error_(primary.error()) {}

inline Acquired::Acquired(const Acquired& other) noexcept
    : incarnation_(other.incarnation_), source_(other.source_), device_(other.device_), error_() {
  if (!ok()) SetError(other.error_);
}

inline Error Acquired::error() const noexcept {
  if (ok()) return {};
  return error_.ok() ? internal::HoldsNothing("hold an acquired context") : error_;
}

inline CUresult Acquired::GetDevice(Device* device) const noexcept {
  if (!ok()) return error().code;
  if (device_ == internal::kDeviceNotAsked) return CUDA_ERROR_NOT_SUPPORTED;
  *device = Device::Borrow(device_);
  return CUDA_SUCCESS;
}

inline Error Acquired::Hold() noexcept {
  return ok() ? internal::NotSupported("hold an acquired context") : error();
}

inline Error Acquired::Release() noexcept {
  SetEmpty();
  return {};
}

inline void Acquired::End() noexcept {}

inline void Acquired::Take(Acquired* other) noexcept {
  incarnation_ = other->incarnation_;
  source_ = other->source_;
  device_ = other->device_;
  if (!ok()) SetError(other->error_);
  other->SetEmpty();
}

namespace internal {

CUGUEST_HIDE inline Acquired NotAcquired() noexcept {
  return Acquired(NotSupported("acquire a context"));
}

inline Acquired AcquireFromOwner(const ContextRef& /*context*/, Device /*device*/,
                                 bool /*is_empty*/, IfInactive /*if_inactive*/) noexcept {
  return NotAcquired();
}
inline Acquired AcquireCurrent(const CurrentContext& /*asked*/, Device /*device*/) noexcept {
  return NotAcquired();
}
inline Acquired AcquireOn(const CurrentContext& /*asked*/, Device /*device*/,
                          IfInactive /*if_inactive*/) noexcept {
  return NotAcquired();
}

}  // namespace internal

inline Acquired AcquireFromStream(CUstream /*stream*/) noexcept { return internal::NotAcquired(); }
inline Acquired AcquireFromStream(CUstream /*stream*/, Device /*device*/,
                                  IfInactive /*if_inactive*/) noexcept {
  return internal::NotAcquired();
}
inline Acquired AcquireFromPointer(CUdeviceptr /*pointer*/, IfInactive /*if_inactive*/) noexcept {
  return internal::NotAcquired();
}
inline Acquired AcquireFromPointer(const void* /*pointer*/, IfInactive /*if_inactive*/) noexcept {
  return internal::NotAcquired();
}
inline Acquired AcquireFromBuffer(CUdeviceptr /*pointer*/, std::size_t /*bytes*/,
                                  IfInactive /*if_inactive*/) noexcept {
  return internal::NotAcquired();
}
inline Acquired AcquireFromBuffer(const void* /*pointer*/, std::size_t /*bytes*/,
                                  IfInactive /*if_inactive*/) noexcept {
  return internal::NotAcquired();
}
inline Acquired AcquireAny() noexcept { return internal::NotAcquired(); }

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_ACQUIRE_H_
