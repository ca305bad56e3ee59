// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"

#include <utility>

#include "cuguest/acquire.h"
#include "cuguest/thread_home.h"
#include "lib/capi/c_storage.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

using HomeStorage = StorageOf<ThreadHome, cuguest_thread_home>;

CUresult CanBind(cuguest_thread_home* given, int options) noexcept {
  const bool are_options = (options & ~(CUGUEST_HOME_HOLDS | CUGUEST_HOME_REENTERS)) == 0;
  return are_options ? HomeStorage(given).CanBegin() : CUDA_ERROR_INVALID_VALUE;
}

// Needs CanBind().
CUresult BindHome(cuguest_thread_home* given, Acquired&& home, int options,
                  Location where) noexcept {
  const HomeStorage storage(given);
  const auto keep = (options & CUGUEST_HOME_HOLDS) != 0 ? ThreadHome::Keep::kReference
                                                        : ThreadHome::Keep::kNothing;
  const auto if_over = (options & CUGUEST_HOME_REENTERS) != 0 ? ThreadHome::IfOver::kReenter
                                                              : ThreadHome::IfOver::kRefuse;
  const CUresult bound = storage.Begin(std::move(home), keep, if_over, where)->error().code;
  if (bound != CUDA_SUCCESS) storage.End();
  return bound;
}

Acquired OfRef(const cuguest_ref& ref) {
  return Acquired(NamedBy(ref).Ref(), Acquired::Source::kCurrent, Device::Borrow(kDeviceNotAsked));
}

// What `call` gives of a home that has begun.
template <typename Call>
CUresult WithHome(cuguest_thread_home* given, Call call) noexcept {
  const HomeStorage storage(given);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? call(&*storage).code : code;
}

}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

int cuguest_thread_home_enter_ref(cuguest_thread_home* home, const cuguest_ref* ref, int options,
                                  const char* file, int line) {
  if (!c::IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = c::CanBind(home, options);
  return code == CUDA_SUCCESS ? c::BindHome(home, c::OfRef(*ref), options, {file, line}) : code;
}

int cuguest_thread_home_enter_stream(cuguest_thread_home* home, CUstream stream, int options,
                                     const char* file, int line) {
  const CUresult code = c::CanBind(home, options);
  if (code != CUDA_SUCCESS) return code;
  return c::BindHome(home, cuguest::AcquireFromStream(stream), options, {file, line});
}

// Source: <cuda.h>, where a CUdeviceptr is this type on 64-bit platforms.
int cuguest_thread_home_enter_pointer(cuguest_thread_home* home, unsigned long long pointer,
                                      int options, const char* file, int line) {
  const CUresult code = c::CanBind(home, options);
  if (code != CUDA_SUCCESS) return code;
  return c::BindHome(home, cuguest::AcquireFromPointer(static_cast<CUdeviceptr>(pointer)), options,
                     {file, line});
}

int cuguest_thread_home_enter_device(cuguest_thread_home* home, int device, int options,
                                     const char* file, int line) {
  const CUresult code = c::CanBind(home, options);
  if (code != CUDA_SUCCESS) return code;
  return c::BindHome(home,
                     c::AcquireOn(c::CurrentContext(), cuguest::Device::Borrow(device),
                                  cuguest::IfInactive::kRefuse),
                     options, {file, line});
}

int cuguest_thread_home_check(cuguest_thread_home* home) {
  return c::WithHome(home, [](cuguest::ThreadHome* object) { return object->Check(); });
}

int cuguest_thread_home_move_to(cuguest_thread_home* home, const cuguest_ref* ref) {
  if (!c::IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  return c::WithHome(home,
                     [=](cuguest::ThreadHome* object) { return object->MoveTo(c::OfRef(*ref)); });
}

int cuguest_thread_home_ref(const cuguest_thread_home* home, cuguest_ref* ref) {
  return c::NameObject<cuguest::ThreadHome>(home, ref);
}

int cuguest_thread_home_leave(cuguest_thread_home* home) {
  return c::EndScope<cuguest::ThreadHome>(
      home, [](cuguest::ThreadHome* object) { return object->Leave().code; });
}

void cuguest_thread_home_cleanup(cuguest_thread_home* home) {
  c::CleanUpObject<cuguest::ThreadHome>(home);
}
