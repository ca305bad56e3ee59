// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
/// \file
/// `Location` is a file and a line. What reports incidents takes one as its last argument, by
/// default the place of the call. Give it where that is not where the guard is written: for
/// std::optional::emplace, std::make_unique and containers it is in the standard library.
///
///   std::optional<cuguest::ContextGuard> guard;
///   if (needs_context) guard.emplace(context, cuguest::GuardMode::kElide,
///   cuguest::Location::Here());
///
/// A function of yours that makes a guard takes one, too, and incidents name the function's caller:
///
///   absl::Status Enter(const Job& job, cuguest::ContextScope* scope,
///                      cuguest::Location where = cuguest::Location::Here());

#ifndef CUGUEST_LOCATION_H_
#define CUGUEST_LOCATION_H_

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

struct Location {
  /// The place of the call. Give no arguments.
  [[nodiscard]] CUGUEST_HIDE static constexpr Location Here(const char* file = __builtin_FILE(),
                                                            int line = __builtin_LINE()) noexcept {
    return {file, line};
  }

  const char* file;  ///< static storage
  int line;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LOCATION_H_
