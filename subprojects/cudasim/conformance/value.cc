// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "conformance/value.h"

#include <cctype>

namespace conformance {

std::string ToText(const Value& value) {
  const std::string number = std::to_string(value.number);
  return value.kind == Value::kNumber ? number : value.kind + number;
}

Value ToValue(const std::string& text) {
  if (std::isalpha(static_cast<unsigned char>(text.front())) == 0) {
    return {Value::kNumber, std::stoll(text)};
  }
  return {text.front(), std::stoll(text.substr(1))};
}

}  // namespace conformance
