// SPDX-License-Identifier: Apache-2.0
//
// A file that uses the runtime bridge; compiled only, because this test has no CUDA runtime.

#include "cuguest/runtime/binding.h"

static_assert(CUDART_VERSION >= 12000, "the headers see the toolkit");
