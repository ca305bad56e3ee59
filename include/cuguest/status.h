// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 0
/// \file
/// `absl::Status` of the driver's `CUresult` and of what the core returns, and the driver's code
/// out of a status again. A status says what was being done, to what, what the driver said, and
/// what to do about it. Nothing here reads or writes the runtime's last error (`cudaGetLastError`).
///
///   absl::Status s = cuguest::ToStatus(code, "allocate 4096 bytes", "device 0");
///   // RESOURCE_EXHAUSTED: allocate 4096 bytes, device 0:
///   //   CUDA_ERROR_OUT_OF_MEMORY (2): ...
///   cuguest::CodeOf(s) == CUDA_ERROR_OUT_OF_MEMORY;
///
/// In functions that return an `absl::Status` or an `absl::StatusOr`, two macros return on error:
///
///   cuguest::ContextGuard guard(ctx);
///   CUGUEST_RETURN_IF_ERROR(guard);
///   CUGUEST_ASSIGN_OR_RETURN(const cuguest::Device device, cuguest::CurrentDevice());

#ifndef CUGUEST_STATUS_H_
#define CUGUEST_STATUS_H_

#include <cuda.h>

#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/error.h"
#include "cuguest/error_or.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
CUGUEST_API absl::Status MakeStatus(CUresult code, std::string_view doing, std::string_view object);
}  // namespace internal

/// The status of a driver's code. `doing` is a verb phrase ("push a context"), `object` what it was
/// done to ("device 1", "context 0x5581"); either may be empty. Where a DriverLog is open
/// (objects/driver_log.h) and this thread's last call of the driver through cuguest gave `code`,
/// the driver's own reason follows, once.
/// Threads: any.
/// Cost:    one comparison on success, nothing allocated; text is built on failure only.
[[nodiscard]] CUGUEST_HIDE inline absl::Status ToStatus(CUresult code, std::string_view doing,
                                                        std::string_view object = {}) {
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  return internal::MakeStatus(code, doing, object);
}

/// The same for an object of cuguest that carries a raw `result()` because it sits on a hot path,
/// such as `ContextGuard`, `NoContextGuard` or `ContextRef`.
template <typename T>
[[nodiscard]] CUGUEST_HIDE auto ToStatus(const T& carrier)
    -> decltype(internal::MakeStatus(carrier.result(), carrier.doing(), carrier.advice())) {
  if (carrier.result() == CUDA_SUCCESS) return absl::OkStatus();
  return internal::MakeStatus(carrier.result(), carrier.doing(), carrier.advice());
}

/// The same for an error of the core, and for an object of the core that has one.
/// Cost: none on success; text is built on failure only.
[[nodiscard]] CUGUEST_API absl::Status ToStatus(const Error& error);
template <typename T>
[[nodiscard]] CUGUEST_HIDE auto ToStatus(const T& object)
    -> decltype(ToStatus(Error(object.error()))) {
  return ToStatus(Error(object.error()));
}

/// The same for what has a status(), such as a CublasScope.
template <typename T>
[[nodiscard]] CUGUEST_HIDE auto ToStatus(const T& object)
    -> decltype(absl::Status(object.status())) {
  return object.status();
}

/// The driver's code that `status` was made from, or the one for the runtime's code
/// (runtime/error.h) that it was made from; nothing for any other status. CUDA_SUCCESS for OK.
[[nodiscard]] CUGUEST_API std::optional<CUresult> CodeOf(const absl::Status& status);

/// What a function in C returns of `status`: CodeOf() it, or of one that no code was made from the
/// nearest, as CUDA_ERROR_INVALID_VALUE of kInvalidArgument and kOutOfRange; CUDA_ERROR_UNKNOWN of
/// kInternal, kUnknown and the like. CUDA_SUCCESS only for OK.
[[nodiscard]] CUGUEST_API CUresult ResultOf(const absl::Status& status);

namespace internal {

// See error_or.h.
template <typename T>
struct ResultTraits<absl::StatusOr<T>> {
  CUGUEST_HIDE static constexpr bool kIsResult = true;
  using Value = T;
  template <typename U>
  using Or = absl::StatusOr<U>;
  CUGUEST_HIDE static absl::Status Of(const Error& error) { return ToStatus(error); }
  CUGUEST_HIDE static const absl::Status& WhyNot(const absl::StatusOr<T>& result) noexcept {
    return result.status();
  }
};

// What the macros below take: a status, or what ToStatus() takes.
[[nodiscard]] CUGUEST_HIDE inline absl::Status StatusOf(absl::Status status) { return status; }
template <typename T>
[[nodiscard]] CUGUEST_HIDE auto StatusOf(const T& carrier) -> decltype(ToStatus(carrier)) {
  return ToStatus(carrier);
}
// A guard that is made there would end there.
template <typename T>
std::enable_if_t<!std::is_copy_constructible_v<T>> StatusOf(const T&&) = delete;

template <typename T>
[[nodiscard]] CUGUEST_HIDE T ReturnedValue(absl::StatusOr<T>&& result) {
  return *std::move(result);
}
template <typename T>
[[nodiscard]] CUGUEST_HIDE T ReturnedValue(ErrorOr<T>&& result) {
  return *std::move(result);
}
template <typename T, typename = decltype(ToStatus(std::declval<const T&>()))>
[[nodiscard]] CUGUEST_HIDE T ReturnedValue(T&& object) {
  return std::forward<T>(object);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

/// Returns the status of its argument from the enclosing function unless it is OK. The argument is
/// a status, or an object that ToStatus() takes, such as a StatusOr, a guard, a SharedContext or an
/// Error. An object that cannot be copied must be a variable: a guard
/// that is made in the argument would end before the next line, and does not compile.
/// Cost: the argument is evaluated once; one comparison if it is OK.
#define CUGUEST_RETURN_IF_ERROR(...)                                              \
  do {                                                                            \
    if (absl::Status cuguest_status = ::cuguest::internal::StatusOf(__VA_ARGS__); \
        !cuguest_status.ok()) {                                                   \
      return cuguest_status;                                                      \
    }                                                                             \
  } while (false)

/// CUGUEST_ASSIGN_OR_RETURN(declaration, expression)
///
/// `declaration`, or a variable, becomes the value of a StatusOr or an ErrorOr, or an object that
/// ToStatus() takes, such as a PrimaryContext, either moved; if that is not OK, its status is
/// returned from the function. The expression is evaluated once. The macro is several statements,
/// so an `if` needs braces around it. A declaration with a comma outside of parentheses needs an
/// alias.
#define CUGUEST_ASSIGN_OR_RETURN(declaration, ...) \
  CUGUEST_INTERNAL_ASSIGN(CUGUEST_INTERNAL_NAME(__LINE__), declaration, (__VA_ARGS__))

#define CUGUEST_INTERNAL_PASTE(a, b) a##b
#define CUGUEST_INTERNAL_NAME(line) CUGUEST_INTERNAL_PASTE(cuguest_result_, line)
#define CUGUEST_INTERNAL_ASSIGN(result, declaration, expression)  \
  auto result = expression;                                       \
  if (!result.ok()) return ::cuguest::internal::StatusOf(result); \
  declaration = ::cuguest::internal::ReturnedValue(std::move(result))

#endif  // CUGUEST_STATUS_H_
