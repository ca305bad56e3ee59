// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a device is given access to another device's memory, for the texts of refusals.  tier: 3

#ifndef CUGUEST_LIB_OBJECTS_MEMORY_HOW_TO_REACH_H_
#define CUGUEST_LIB_OBJECTS_MEMORY_HOW_TO_REACH_H_

#include "cuguest/export.h"
#include "cuguest/objects/memory.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// The call that does, of each kind its own (cudasim/test/reach_facts_test.cc).
inline const char* HowToReach(MemoryDescription::Kind kind) noexcept {
  switch (kind) {
    case MemoryDescription::Kind::kPool:
      return "cuMemPoolSetAccess (peer access does not open a pool)";
    case MemoryDescription::Kind::kVirtual:
      return "cuMemSetAccess";
    default:
      return "PeerAccess::Enable";
  }
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_MEMORY_HOW_TO_REACH_H_
