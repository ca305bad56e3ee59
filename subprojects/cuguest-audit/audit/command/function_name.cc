// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

#include "audit/command/symbols.h"
#include "audit/text.h"

namespace cuguest::audit {

namespace {

constexpr char kOpening[] = "(<[{";
constexpr char kClosing[] = ")>]}";
constexpr char kOperator[] = "operator";
constexpr char kAnonymous[] = "(anonymous namespace)::";

bool IsOneOf(const char* characters, char c) {
  return std::string(characters).find(c) != std::string::npos;
}

bool IsOfName(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool IsOperatorAt(const std::string& text, size_t at) {
  return text.compare(at, sizeof(kOperator) - 1, kOperator) == 0 &&
         (at == 0 || !IsOfName(text[at - 1])) && !IsOfName(text[at + sizeof(kOperator) - 1]);
}

// The end of the operator's name that begins at `at`.
size_t EndOfOperator(const std::string& text, size_t at) {
  at += sizeof(kOperator) - 1;
  if (text.compare(at, 2, "()") == 0 || text.compare(at, 2, "[]") == 0) return at + 2;
  if (at < text.size() && text[at] == ' ') return text.find('(', at);  // new, a conversion
  while (at < text.size() && !IsOfName(text[at]) && !IsOneOf("( ", text[at])) ++at;
  return at;
}

}  // namespace

// Without "_Z" it would be read as a type: "i" is int, "Dot" a noexcept function.
std::string Demangled(const std::string& symbol) {
  if (!StartsWith(symbol, "_Z")) return symbol;
  int status = 0;
  char* demangled = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string text = demangled == nullptr ? symbol : demangled;
  std::free(demangled);
  return text;
}

// Passes once over the text, outside of all brackets: a blank there ends a return type, and the
// last parenthesis begins the parameters.
std::string WithoutParameters(const std::string& demangled) {
  size_t begin = 0;
  size_t parameters = std::string::npos;
  int depth = 0;
  for (size_t at = 0; at < demangled.size(); ++at) {
    const char c = demangled[at];
    if (depth == 0 && c == 'o' && IsOperatorAt(demangled, at)) {
      const size_t end = EndOfOperator(demangled, at);
      if (end == std::string::npos) break;
      at = end - 1;
      continue;
    }
    if (IsOneOf(kOpening, c)) {
      const bool is_scope = demangled.compare(at, 11, "(anonymous ") == 0;
      if (depth == 0 && c == '(' && !is_scope) parameters = at;
      ++depth;
    } else if (IsOneOf(kClosing, c)) {
      --depth;
      // "main::{lambda()#1}", "f(int)::Local::g": what came before was a scope.
    } else if (depth == 0 && c == ':' && parameters != std::string::npos) {
      parameters = std::string::npos;
    } else if (depth == 0 && c == ' ' && parameters == std::string::npos) {
      begin = at + 1;
    }
  }
  const std::string name =
      demangled.substr(begin, parameters == std::string::npos ? parameters : parameters - begin);
  return depth == 0 && !name.empty() ? name : demangled;
}

std::string ShortName(const std::string& name, std::size_t width) {
  constexpr size_t kLongList = 12;
  std::string text;
  for (size_t at = 0; at < name.size(); ++at) {
    if (name[at] == 'o' && IsOperatorAt(name, at)) {
      const size_t end = std::min(EndOfOperator(name, at), name.size());
      text += name.substr(at, end - at);
      at = end - 1;
      continue;
    }
    if (name.compare(at, sizeof(kAnonymous) - 1, kAnonymous) == 0) {
      at += sizeof(kAnonymous) - 2;
      continue;
    }
    text += name[at];
    if (name[at] != '<' && name[at] != '(') continue;
    size_t end = at;
    for (int depth = 0; end < name.size(); ++end) {
      if (IsOneOf(kOpening, name[end])) ++depth;
      if (IsOneOf(kClosing, name[end]) && name[end - 1] != '-' && --depth == 0) break;
    }
    if (end >= name.size() || end - at <= kLongList) continue;
    text += "..." + name.substr(end, 1);
    at = end;
  }
  if (text.size() <= width || width < 8) return text;
  const size_t last = (width - 3) / 3;
  return text.substr(0, width - 3 - last) + "..." + text.substr(text.size() - last);
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string Function::ToString() const {
  char hexadecimal[24];
  std::snprintf(hexadecimal, sizeof(hexadecimal), "0x%llx",
                static_cast<unsigned long long>(offset));
  if (object.empty()) return hexadecimal;
  if (name.empty()) return BaseName(object) + "+" + hexadecimal;
  return file.empty() ? name : name + " (" + BaseName(file) + ":" + std::to_string(line) + ")";
}

}  // namespace cuguest::audit
