// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether an image could be read, and if not, why.

#ifndef CUDAIMAGE_STATUS_H_
#define CUDAIMAGE_STATUS_H_

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "namespace.h"

CUDAIMAGE_BEGIN_NAMESPACE

class [[nodiscard]] Status {
 public:
  enum class Code {
    kOk,
    kDamaged,      // the bytes: the message has the offset, and what is wrong there
    kUnavailable,  // a library is missing on this machine
    kTooOld,       // a library lacks a function
    kNoMemory,     // host memory
  };

  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const noexcept { return code_ == Code::kOk; }
  Code code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// Texts and whole numbers, one behind the other.
template <typename... Parts>
std::string Text(const Parts&... parts) {
  std::string text;
  const auto append = [&text](const auto& part) {
    using Part = std::decay_t<decltype(part)>;
    if constexpr (std::is_enum_v<Part>) {
      text += std::to_string(+static_cast<std::underlying_type_t<Part>>(part));
    } else if constexpr (std::is_integral_v<Part>) {
      text += std::to_string(+part);
    } else {
      text += part;
    }
  };
  (append(parts), ...);
  return text;
}

// The same status, with the part that it is about in front: "section 3, ...".
inline Status Within(const std::string& part, const Status& status) {
  return status.ok() ? status : Status(status.code(), part + ", " + status.message());
}

// Returns from the function what is not OK.
#define CUDAIMAGE_RETURN_IF_ERROR(expression)                       \
  do {                                                              \
    if (auto status_ = (expression); !status_.ok()) return status_; \
  } while (false)

CUDAIMAGE_END_NAMESPACE

#endif  // CUDAIMAGE_STATUS_H_
