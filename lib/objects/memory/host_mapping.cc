// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/objects/memory/host_mapping.h"

#include <fstream>
#include <sstream>

CUGUEST_BEGIN_INTERNAL_NAMESPACE

HostMapping FindMapping(std::uintptr_t begin, std::uintptr_t end) {
  HostMapping first;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    char dash = '\0';
    std::string offset;
    std::string device;
    std::string inode;
    HostMapping mapping;
    words >> std::hex >> from >> dash >> to >> mapping.permissions >> offset >> device >> inode;
    if (words.fail() || to <= begin || from >= end) continue;
    std::getline(words >> std::ws, mapping.file);
    const bool is_like_anonymous =
        mapping.IsWritable() && (mapping.file.empty() || !mapping.IsShared());
    if (!is_like_anonymous) return mapping;
    if (first.permissions.empty()) first = mapping;
  }
  return first;
}

CUGUEST_END_INTERNAL_NAMESPACE
