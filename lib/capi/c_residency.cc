// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"
#include "cuguest/context_scope.h"
#include "cuguest/internal/this_thread.h"
#include "lib/capi/c_storage.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

// A scope that is left where it could not be moved, and that another thread never enters.
class Residency {
 public:
  Residency(const ContextRef& context, Location where) noexcept : where_(where) {
    code_ = scope_.Enter(context, GuardMode::kAlwaysPush, where);
  }
  CUresult result() const noexcept { return code_; }
  ContextRef context() const noexcept { return scope_.context(); }
  CUresult Reassert() noexcept {
    return thread_.IsThis() ? scope_.Reassert() : CUDA_ERROR_ILLEGAL_STATE;
  }
  CUresult MoveTo(const ContextRef& context) noexcept {
    if (!thread_.IsThis()) return CUDA_ERROR_ILLEGAL_STATE;
    const CUresult code = scope_.MoveTo(context, where_);
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_ILLEGAL_STATE) static_cast<void>(Leave());
    return code;
  }
  CUresult Leave() noexcept {
    const CUresult code = scope_.Leave();
    return code == CUDA_ERROR_ILLEGAL_STATE ? CUDA_SUCCESS : code;  // it has left already
  }

 private:
  const BoundThread thread_;
  const Location where_;
  CUresult code_;
  ContextScope scope_;
};
using ResidencyStorage = StorageOf<Residency, cuguest_residency>;

}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

int cuguest_residency_enter(cuguest_residency* residency, const cuguest_ref* ref, const char* file,
                            int line) {
  if (!c::IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  const c::ResidencyStorage storage(residency);
  CUresult code = storage.CanBegin();
  if (code != CUDA_SUCCESS) return code;
  code = storage.Begin(c::NamedBy(*ref).Ref(), cuguest::Location{file, line})->result();
  if (code != CUDA_SUCCESS) storage.End();
  return code;
}

int cuguest_residency_ref(const cuguest_residency* residency, cuguest_ref* ref) {
  return c::NameObject<c::Residency>(residency, ref);
}

int cuguest_residency_reassert(cuguest_residency* residency) {
  const c::ResidencyStorage storage(residency);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? storage->Reassert() : code;
}

int cuguest_residency_settle(cuguest_residency* residency) {
  return cuguest_residency_reassert(residency);
}

int cuguest_residency_move_to(cuguest_residency* residency, const cuguest_ref* ref) {
  const c::ResidencyStorage storage(residency);
  const CUresult code = c::IsRef(ref) ? storage.HasBegun() : CUDA_ERROR_INVALID_VALUE;
  return code == CUDA_SUCCESS ? storage->MoveTo(c::NamedBy(*ref).Ref()) : code;
}

int cuguest_residency_leave(cuguest_residency* residency) {
  return c::EndScope<c::Residency>(residency, [](c::Residency* object) { return object->Leave(); });
}

void cuguest_residency_cleanup(cuguest_residency* residency) {
  c::CleanUpObject<c::Residency>(residency);
}
