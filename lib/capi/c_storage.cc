// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"

#include <cstring>

void cuguest_init(void* storage, size_t size) {
  if (storage == nullptr || size < sizeof(size)) return;
  std::memset(storage, 0, size);
  std::memcpy(storage, &size, sizeof(size));
}
