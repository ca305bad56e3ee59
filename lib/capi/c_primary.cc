// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"
#include "lib/capi/c_storage.h"
#include "lib/share/primary_call.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

struct Primary {
  ContextRef incarnation;
  CUdevice device = 0;
};

}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

int cuguest_primary_retain(cuguest_primary* primary, int device) {
  return c::BeginObject<c::Primary>(primary, [=](c::Primary* object) {
    object->device = device;
    return c::RetainPrimary(device, &object->incarnation);
  });
}

int cuguest_primary_ref(const cuguest_primary* primary, cuguest_ref* ref) {
  return c::NameObject<c::Primary>(primary, ref);
}

int cuguest_primary_move(cuguest_primary* to, cuguest_primary* from) {
  return c::MoveObject<c::Primary>(to, from);
}

int cuguest_primary_release(cuguest_primary* primary) {
  return c::ReleaseObject<c::Primary>(
      primary, [](c::Primary* object) { return c::ReleasePrimary(object->device); });
}

void cuguest_primary_cleanup(cuguest_primary* primary) {
  static_cast<void>(cuguest_primary_release(primary));
}
