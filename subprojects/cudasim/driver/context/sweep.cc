// SPDX-License-Identifier: Apache-2.0

#include "driver/context/sweep.h"

#include "driver/context/peer.h"
#include "driver/memory/array.h"
#include "driver/memory/memory.h"
#include "driver/memory/texture.h"
#include "driver/stream/captures.h"

namespace cudasim::driver {

void SweepEverythingIn(std::uint64_t context_id) {
  Captures::DropLife(context_id);
  Memory::DropLife(context_id);
  DropTexturesOf(context_id);
  DropArraysOf(context_id);
  DropPeersOf(context_id);
}

}  // namespace cudasim::driver
