// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Apart from c_acquire.cc, so that an embedder that only acquires has no registry.

#include "cuguest/c.h"
#include "cuguest/shared_context.h"
#include "lib/capi/c_storage.h"

namespace c = cuguest::internal;

int cuguest_shared_context_create(cuguest_shared_context* shared, int device, unsigned flags) {
  return c::BeginObject(shared, [=] {
    return cuguest::SharedContext::Create(cuguest::Device::Borrow(device), flags);
  });
}

int cuguest_shared_context_attach(cuguest_shared_context* shared, CUcontext context) {
  return c::BeginObject(shared, [=] { return cuguest::SharedContext::Attach(context); });
}

int cuguest_shared_context_ref(const cuguest_shared_context* shared, cuguest_ref* ref) {
  return c::NameObject<cuguest::SharedContext>(shared, ref);
}

int cuguest_shared_context_move(cuguest_shared_context* to, cuguest_shared_context* from) {
  return c::MoveObject<cuguest::SharedContext>(to, from);
}

int cuguest_shared_context_detach(cuguest_shared_context* shared) {
  return c::ReleaseObject<cuguest::SharedContext>(shared);
}

void cuguest_shared_context_cleanup(cuguest_shared_context* shared) {
  c::CleanUpOwner<cuguest::SharedContext>(shared);
}
