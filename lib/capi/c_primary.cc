// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"
#include "cuguest/primary_context.h"
#include "lib/capi/c_storage.h"

namespace c = cuguest::internal;

int cuguest_primary_retain(cuguest_primary* primary, int device) {
  return c::BeginObject(
      primary, [=] { return cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(device)); });
}

int cuguest_primary_retain_if_active(cuguest_primary* primary, int device) {
  return c::BeginObject(primary, [=] {
    return cuguest::PrimaryContext::RetainIfActive(cuguest::Device::Borrow(device));
  });
}

int cuguest_primary_ref(const cuguest_primary* primary, cuguest_ref* ref) {
  return c::NameObject<cuguest::PrimaryContext>(primary, ref);
}

int cuguest_primary_move(cuguest_primary* to, cuguest_primary* from) {
  return c::MoveObject<cuguest::PrimaryContext>(to, from);
}

int cuguest_primary_release(cuguest_primary* primary) {
  return c::ReleaseObject<cuguest::PrimaryContext>(primary);
}

void cuguest_primary_cleanup(cuguest_primary* primary) {
  c::CleanUpOwner<cuguest::PrimaryContext>(primary);
}
