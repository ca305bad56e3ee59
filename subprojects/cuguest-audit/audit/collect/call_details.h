// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arguments of a call, by the letters of its CallRule.

#ifndef CUGUEST_AUDIT_COLLECT_CALL_DETAILS_H_
#define CUGUEST_AUDIT_COLLECT_CALL_DETAILS_H_

#include <cstdint>

#include "audit/collect/collector.h"

namespace cuguest::audit {

struct CallDetails {
  explicit CallDetails(const ReportedCall& call);

  const void* handle = nullptr;  // a context that is a parameter
  const void* meant = nullptr;   // that it is about: a parameter or an answer
  int device = -1;
  int setting = -1;
  std::uint64_t value = 0;
  const int* mode = nullptr;

 private:
  void Take(char letter, const void* at, bool is_done);
  void TakeAnswer(char letter, const void* out);
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_CALL_DETAILS_H_
