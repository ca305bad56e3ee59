// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/context_ref.h"

#include "lib/guard/nesting.h"

CUGUEST_BEGIN_NAMESPACE

const char* ContextRef::advice() const noexcept { return internal::Advice(result_); }

CUGUEST_END_NAMESPACE
