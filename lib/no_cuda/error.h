// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is refused, and the text of it. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_ERROR_H_
#define CUGUEST_LIB_NO_CUDA_ERROR_H_

#include <cstddef>
#include <cstdint>

#include "cuguest/c.h"
#include "cuguest/error.h"

CUGUEST_BEGIN_NAMESPACE

inline const char* ErrorName(CUresult code) noexcept { return cuguest_error_name(code); }
inline const char* ErrorText(CUresult code) noexcept { return cuguest_error_text(code); }

// Of another vendor's codes, whose numbers are treated as CUDA's.
template <typename Code, typename = internal::IfEnum<Code>>
CUGUEST_HIDE const char* ErrorName(Code code) noexcept {
  return cuguest_error_name(static_cast<int>(code));
}
template <typename Code, typename = internal::IfEnum<Code>>
CUGUEST_HIDE const char* ErrorText(Code code) noexcept {
  return cuguest_error_text(static_cast<int>(code));
}
template <typename Code, typename = internal::IfEnum<Code>>
CUGUEST_HIDE bool IsSticky(Code code) noexcept {
  return IsSticky(CUresult(static_cast<int>(code)));
}

namespace internal {

inline Error MakeError(CUresult code, const char* doing, const char* advice) noexcept {
  Error error;
  error.code = code;
  error.doing = doing;
  if (*advice != '\0') {
    error.subject = Error::Subject::kAdvice;
    error.handle = reinterpret_cast<std::uintptr_t>(advice);
  }
  return error;
}

CUGUEST_HIDE inline Error NotSupported(const char* doing) noexcept {
  return MakeError(CUDA_ERROR_NOT_SUPPORTED, doing,
                   "in a program that was compiled with CUGUEST_NO_CUDA");
}

CUGUEST_HIDE inline Error HoldsNothing(const char* doing) noexcept {
  Error error = MakeError(CUDA_ERROR_INVALID_CONTEXT, doing, "");
  error.reason = Error::Reason::kEmpty;
  return error;
}

}  // namespace internal

inline std::size_t Error::Write(char* text, std::size_t size) const noexcept {
  if (ok()) {
    if (size > 0) *text = '\0';
    return 0;
  }
  char digits[16] = "";
  char* number = digits + sizeof(digits) - 1;
  unsigned rest = static_cast<unsigned>(static_cast<int>(code));
  do {
    *--number = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  const bool has_advice = subject == Subject::kAdvice;
  const char* const words[] = {
      doing,
      has_advice ? ", " : "",
      has_advice ? reinterpret_cast<const char*>(static_cast<std::uintptr_t>(handle)) : "",
      ": ",
      ErrorName(code),
      " (",
      number,
      "): ",
      ErrorText(code)};
  std::size_t length = 0;
  for (const char* word : words) {
    for (; *word != '\0'; ++word, ++length) {
      if (length < size) text[length] = *word;
    }
  }
  if (size > 0) text[length < size ? length : size - 1] = '\0';
  return length;
}

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_ERROR_H_
