// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The effect "echo": each sound twice.

#include "examples/guest/plugin_attach/member.h"

EXPORT_EFFECT(1)
