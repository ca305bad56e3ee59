// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the system has mapped memory of the host: for the text of a failure.             tier: 3

#ifndef CUGUEST_LIB_OBJECTS_MEMORY_HOST_MAPPING_H_
#define CUGUEST_LIB_OBJECTS_MEMORY_HOST_MAPPING_H_

#include <cstdint>
#include <string>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct HostMapping {
  std::string permissions;  // "r--p", as /proc/self/maps has them; empty if that cannot be read
  std::string file;         // empty for anonymous memory

  bool IsWritable() const { return permissions.find('w') != std::string::npos; }
  bool IsShared() const { return permissions.find('s') != std::string::npos; }
};

// Of the first mapping in [begin, end) that a device cannot write to as to anonymous memory, which
// is read-only, or shared and of a file; else of the first. Opens a file.
HostMapping FindMapping(std::uintptr_t begin, std::uintptr_t end);

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_MEMORY_HOST_MAPPING_H_
