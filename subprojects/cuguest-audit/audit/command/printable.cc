// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/printable.h"

#include <cstddef>
#include <cstdio>

namespace cuguest::audit {
namespace {

// The bytes of the control character at `at`; 0 if there is none.
std::size_t ControlBytes(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0x20u;
  };
  if (byte(at) < 0x20 || byte(at) == 0x7f) return 1;
  return byte(at) == 0xc2 && byte(at + 1) >= 0x80 && byte(at + 1) < 0xa0 ? 2 : 0;
}

std::string Escape(char c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  char escaped[8];
  std::snprintf(escaped, sizeof(escaped), "\\x%02x",
                static_cast<unsigned>(static_cast<unsigned char>(c)));
  return escaped;
}

}  // namespace

std::string Printable(const std::string& text) {
  std::string printable;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = ControlBytes(text, i);
    if (bytes == 0) printable += text[i++];
    for (const std::size_t end = i + bytes; i < end;) printable += Escape(text[i++]);
  }
  return printable;
}

std::string PrintablePattern(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t bytes = ControlBytes(text, i);
    if (bytes != 0) text.replace(i, bytes, bytes, '?');
  }
  return text;
}

}  // namespace cuguest::audit
