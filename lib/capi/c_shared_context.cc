// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Apart from c_acquire.cc, so that an embedder that only acquires has no registry.

#include "cuguest/c.h"
#include "lib/capi/c_storage.h"
#include "lib/share/attach_call.h"

namespace c = cuguest::internal;

int cuguest_shared_context_create(cuguest_shared_context* shared, int device, unsigned flags) {
  return c::BeginObject<c::Attachment>(
      shared, [=](c::Attachment* object) { return c::CreateShared(device, {flags}, object); });
}

int cuguest_shared_context_attach(cuguest_shared_context* shared, CUcontext context) {
  return c::BeginObject<c::Attachment>(
      shared, [=](c::Attachment* object) { return c::Attach(context, object); });
}

int cuguest_shared_context_ref(const cuguest_shared_context* shared, cuguest_ref* ref) {
  return c::NameObject<c::Attachment>(shared, ref);
}

int cuguest_shared_context_move(cuguest_shared_context* to, cuguest_shared_context* from) {
  return c::MoveObject<c::Attachment>(to, from);
}

int cuguest_shared_context_detach(cuguest_shared_context* shared) {
  const c::StorageOf<c::Attachment, cuguest_shared_context> storage(shared);
  CUresult code = storage.HasBegun();
  if (code != CUDA_SUCCESS) return code;
  code = c::Detach(&*storage).code;
  storage.End();
  return code;
}

void cuguest_shared_context_cleanup(cuguest_shared_context* shared) {
  static_cast<void>(cuguest_shared_context_detach(shared));
}
