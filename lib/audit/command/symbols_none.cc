// SPDX-License-Identifier: Apache-2.0
//
// Where the build found no elfutils.

#include "lib/audit/command/symbols.h"

namespace cuguest::audit {

struct Symbols::File {};

Symbols::Symbols() = default;
Symbols::~Symbols() = default;

std::string Symbols::Unavailable() {
  return "functions have no names: cuguest-audit was built without elfutils (libdw-dev)";
}

std::vector<Function> Symbols::Of(const Object* object, std::uint64_t offset) {
  Function own;
  own.offset = offset;
  if (object != nullptr) own.object = object->path;
  return {own};
}

}  // namespace cuguest::audit
