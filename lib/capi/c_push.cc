// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"
#include "cuguest/internal/scope.h"

namespace c = cuguest::internal;

int cuguest_push(CUcontext context) { return c::Scope::PushUnowned(context); }

int cuguest_pop(void) { return c::Scope::PopUnowned(); }
