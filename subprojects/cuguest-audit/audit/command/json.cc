// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/json.h"

#include <cstdio>
#include <utility>

namespace cuguest::audit {

namespace {

// The length of the UTF-8 sequence at `at`: 0 if there is none.
size_t SequenceAt(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80) return 0;
  }
  // Overlong, a surrogate, or beyond the last character.
  const unsigned second = byte(at + 1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) {
    return 0;
  }
  return length;
}

}  // namespace

std::string Utf8(const std::string& text) {
  std::string valid;
  for (size_t at = 0; at < text.size();) {
    const size_t length = SequenceAt(text, at);
    valid += length == 0 ? "\xef\xbf\xbd" : text.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  return valid;
}

std::string JsonString(const std::string& text) {
  std::string json = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t length = SequenceAt(text, at);
    const char c = text[at];
    if (length == 0) {
      json += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      json += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      json += escape;
    } else {
      json.append(text, at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return json + "\"";
}

void JsonWriter::BeginMember(const std::string& name) {
  if (!open_.empty()) {
    text_ += first_ ? "\n" : ",\n";
    text_.append(2 * open_.size(), ' ');
  }
  first_ = false;
  if (!name.empty()) text_ += JsonString(name) + ": ";
}

void JsonWriter::Begin(const std::string& name, char bracket) {
  BeginMember(name);
  text_ += bracket;
  open_ += bracket == '{' ? '}' : ']';
  first_ = true;
}

void JsonWriter::End() {
  const char bracket = open_.back();
  open_.pop_back();
  if (!first_) {
    text_ += '\n';
    text_.append(2 * open_.size(), ' ');
  }
  text_ += bracket;
  first_ = false;
}

void JsonWriter::Raw(const std::string& name, const std::string& json) {
  BeginMember(name);
  text_ += json;
}

std::string JsonWriter::Take() {
  std::string text = std::move(text_) + "\n";
  text_.clear();
  first_ = true;
  return text;
}

}  // namespace cuguest::audit
