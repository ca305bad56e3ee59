// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/share/context_hold.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

std::atomic<const ContextHold::Calls*> ContextHold::g_calls{nullptr};

CUGUEST_END_INTERNAL_NAMESPACE
