// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/entry.h"
#include "lib/sim/panic.h"

namespace cuguest_sim {

void PanicNull() {
  PanicHandle(nullptr,
              "a null argument where a real driver crashes (measured on an H100, driver "
              "580.159.04)");
}

void PanicHandle(const void* handle, const char* text) {
  const Entry* entry = ThisCall().entry;
  Panic("%s(%p): %s", entry != nullptr ? entry->base : "(no entry)", handle, text);
}

}  // namespace cuguest_sim
