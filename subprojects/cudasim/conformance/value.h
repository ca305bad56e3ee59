// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What calls are given, by name: "C2" is the second user context, "S0" a null stream, "-5" a
// number.

#ifndef CUDASIM_CONFORMANCE_VALUE_H_
#define CUDASIM_CONFORMANCE_VALUE_H_

#include <string>
#include <vector>

namespace conformance {

// Kinds of objects. 0 is null in each; names count from 1 in each sequence.
//
// | kind | object                  | kind | object                           |
// |------|-------------------------|------|----------------------------------|
// | C    | user context            | P    | primary context of device P - 1  |
// | G    | green context           | S    | stream; -1 legacy, -2 per-thread |
// | E    | event                   | M    | device memory                    |
// | H    | pinned host memory      | B    | plain host memory                |
// | Q    | memory pool             | R    | graph                            |
// | N    | node                    | X    | executable graph                 |
// | L    | module                  | F    | function                         |
// | Y    | library                 | K    | kernel of a library              |
// | D    | context of device 1     | T    | stream of that                   |
// | O    | memory of that          | W    | mapped memory of device 0        |
struct Value {
  static constexpr char kNumber = '#';

  char kind = kNumber;
  long long number = 0;

  bool operator==(const Value& other) const { return kind == other.kind && number == other.number; }
  bool operator!=(const Value& other) const { return !(*this == other); }
};

using Values = std::vector<Value>;

std::string ToText(const Value& value);
Value ToValue(const std::string& text);

}  // namespace conformance

#endif  // CUDASIM_CONFORMANCE_VALUE_H_
