// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JSON as text, written member by member.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_JSON_H_
#define CUGUEST_AUDIT_COMMAND_JSON_H_

#include <cstdint>
#include <string>

namespace cuguest::audit {

// What is not UTF-8, as in a path, becomes U+FFFD.
[[nodiscard]] std::string Utf8(const std::string& text);

// The same, as a string of JSON.
[[nodiscard]] std::string JsonString(const std::string& text);

// An object or an array that is being written. Members that are added without a name are those of
// an array.
class JsonWriter {
 public:
  void BeginObject(const std::string& name = "") { Begin(name, '{'); }
  void BeginArray(const std::string& name = "") { Begin(name, '['); }
  void End();

  void Add(const std::string& name, const std::string& value) { Raw(name, JsonString(value)); }
  void Add(const std::string& name, const char* value) { Raw(name, JsonString(value)); }
  void Add(const std::string& name, std::uint64_t value) { Raw(name, std::to_string(value)); }
  void Add(const std::string& name, std::int64_t value) { Raw(name, std::to_string(value)); }
  void Add(const std::string& name, int value) { Raw(name, std::to_string(value)); }
  void Add(const std::string& name, bool value) { Raw(name, value ? "true" : "false"); }
  // As JSON already.
  void Raw(const std::string& name, const std::string& json);

  // What was written; the writer is empty then.
  std::string Take();

 private:
  void Begin(const std::string& name, char bracket);
  void BeginMember(const std::string& name);

  std::string text_;
  std::string open_;  // the closing brackets that are to come, innermost last
  bool first_ = true;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_JSON_H_
