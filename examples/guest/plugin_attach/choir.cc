// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The effect "choir": six voices.

#include "examples/guest/plugin_attach/member.h"

EXPORT_EFFECT(5)
