// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How what a context owns is made and ended there, whatever is current and whatever captures.
//                                                                                      tier: 3

#ifndef CUGUEST_LIB_OBJECTS_MEMORY_IN_CONTEXT_H_
#define CUGUEST_LIB_OBJECTS_MEMORY_IN_CONTEXT_H_

#include <cuda.h>

#include <string>

#include "absl/status/statusor.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/objects/internal/owned_object.h"
#include "cuguest/status.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/share/context_hold.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// What came of ending something, without a text: a destructor must not need memory.
struct EndOutcome {
  CUresult code;
  const char* reason;
};

// `call` with `context` current and captures relaxed, in this order: that the context is gone is
// told first.
template <typename Call>
EndOutcome CallIn(const ContextRef& context, const Call& call) noexcept {
  const ContextGuard guard(context);
  if (!guard.ok()) return {guard.result(), guard.advice()};
  return {CallInRelaxedScope(call), ""};
}

// CUDA_ERROR_CONTEXT_IS_DESTROYED: it went with its context.
template <typename End>
EndOutcome EndIn(const ContextRef& context, const End& end) noexcept {
  const ContextHold hold(context);
  return hold.result() == CUDA_SUCCESS ? CallIn(context, end) : EndOutcome{hold.result(), ""};
}

// `create` writes the handle of a new object; of a failure, `text` says what was done and
// `reason`, given its code while still inside the context, to what or why.
template <typename Create, typename Text, typename Reason>
absl::StatusOr<OwnedObject> CreateIn(const ContextRef& context, OwnedObject::Kind kind,
                                     const Create& create, const Text& text, const Reason& reason) {
  const ContextGuard guard(context);
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), text(), guard.advice());
  const RelaxedScope relaxed;
  unsigned long long handle = 0;
  CUresult code = relaxed.result();
  if (code == CUDA_SUCCESS) code = create(&handle);
  CUGUEST_RETURN_IF_CUDA_ERROR(code, text(), reason(code));
  return OwnedObject(kind, handle, context);
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_MEMORY_IN_CONTEXT_H_
