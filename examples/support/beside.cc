// SPDX-License-Identifier: Apache-2.0

#include "examples/support/beside.h"

#include <limits.h>
#include <unistd.h>

namespace support {

std::string Beside(const std::string& file) {
  char self[PATH_MAX] = {};
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0) return file;
  const std::string program = self;
  return program.substr(0, program.rfind('/') + 1) + file;
}

}  // namespace support
