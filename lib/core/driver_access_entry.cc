// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/driver_access.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

DriverEntry EntryAt(std::size_t offset) noexcept {
  DriverEntry entry = FirstEntry();
  while (entry.name != nullptr && entry.offset != offset) entry = Next(entry);
  return entry;
}

CUGUEST_END_INTERNAL_NAMESPACE
