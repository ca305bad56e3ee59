// SPDX-License-Identifier: Apache-2.0

#include "driver/entry.h"
#include "driver/panic.h"

namespace cudasim::driver {

void PanicNull() {
  PanicHandle(nullptr,
              "a null argument where a real driver crashes (measured on an H100, driver "
              "580.159.04)");
}

void PanicHandle(const void* handle, const char* text) {
  const Entry* entry = ThisCall().entry;
  Panic("%s(%p): %s", entry != nullptr ? entry->base : "(no entry)", handle, text);
}

}  // namespace cudasim::driver
