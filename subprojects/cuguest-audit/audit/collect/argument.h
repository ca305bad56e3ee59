// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arguments of a call as a source has them: pointers to them, or a structure of them.

#ifndef CUGUEST_AUDIT_COLLECT_ARGUMENT_H_
#define CUGUEST_AUDIT_COLLECT_ARGUMENT_H_

#include <cstddef>
#include <cstring>

namespace cuguest::audit {

template <typename Type>
Type ReadArgument(const void* at) {
  Type value = {};
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// Calls `visit` with each letter and the address of its argument, which has `size_of(letter)`
// bytes: 8 are aligned to as many, others to 4. `call` has `pointers` and `structure`, of which
// either is null; nothing is visited if both are.
template <typename Call, typename SizeOf, typename Visit>
void ForEachArgument(const char* letters, const Call& call, const SizeOf& size_of,
                     const Visit& visit) {
  if (call.pointers == nullptr && call.structure == nullptr) return;
  std::size_t offset = 0;
  for (std::size_t i = 0; letters[i] != '\0'; ++i) {
    const std::size_t size = size_of(letters[i]);
    const std::size_t alignment = size == 8 ? 8 : 4;
    offset = (offset + alignment - 1) / alignment * alignment;
    visit(letters[i], call.pointers != nullptr ? call.pointers[i]
                                               : static_cast<const char*>(call.structure) + offset);
    offset += size;
  }
}

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_ARGUMENT_H_
