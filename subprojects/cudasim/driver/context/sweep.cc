// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/sweep.h"

#include "lib/sim/array.h"
#include "lib/sim/captures.h"
#include "lib/sim/memory.h"
#include "lib/sim/peer.h"
#include "lib/sim/texture.h"

namespace cuguest_sim {

void SweepEverythingIn(std::uint64_t context_id) {
  Captures::DropLife(context_id);
  Memory::DropLife(context_id);
  DropTexturesOf(context_id);
  DropArraysOf(context_id);
  DropPeersOf(context_id);
}

}  // namespace cuguest_sim
