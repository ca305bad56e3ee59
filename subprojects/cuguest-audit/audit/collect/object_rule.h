// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which arguments of a function of the driver or the runtime are objects that contexts own.

#ifndef CUGUEST_AUDIT_COLLECT_OBJECT_RULE_H_
#define CUGUEST_AUDIT_COLLECT_OBJECT_RULE_H_

#include <cstddef>
#include <cstdint>

#include "audit/event.h"

namespace cuguest::audit {

// What one argument is, as a letter of ObjectRule::arguments. One that is given:
//   S  a stream            E  an event             M  a module            F  a function
//   A  an array            T  a texture            U  a surface
//   D  device memory       H  page-locked memory   P  memory of any kind
//   K  where a launch's configuration is, with its stream
// Where one is stored that the call makes:
//   s e m f a t u d h  of these kinds
//   p l k g            device memory, a module, a function, an array of no context that is known,
//                      as the memory of a pool
// What it is made of:
//   n  a factor of its size                        C  the context that owns it, not the current one
// Others: . of 8 bytes, , of 4 bytes or less, 3 of 12 bytes, as a dim3
struct ObjectRule {
  const char* name;  // without "cu" or "cuda"
  const char* arguments;
  bool frees;  // what is given
};

// Of `name`, without prefix and suffixes; null: it is given no such object, or one that is not in
// an argument.
const ObjectRule* FindObjectRule(bool is_driver, const char* name);

// The kind that a letter stands for; kNone: none, or several.
ObjectKind KindOfLetter(char letter);

// Whether the call stores one at that argument, and whether a context is known to own it then.
bool IsMadeAt(char letter);
bool HasKnownOwner(char letter);

// Of the argument, in bytes.
std::size_t SizeOfObjectArgument(char letter);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_OBJECT_RULE_H_
