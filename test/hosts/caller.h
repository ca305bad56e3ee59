// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What both guests do with what their caller gives them, and tell the caller.

#ifndef CUGUEST_TEST_HOSTS_CALLER_H_
#define CUGUEST_TEST_HOSTS_CALLER_H_

#include <cuda.h>

#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/acquire.h"
#include "cuguest/objects/stream.h"
#include "cuguest/status.h"

namespace hosts {

// The caller's stream in its context, which is kept for the call.
struct Place {
  cuguest::Acquired context;
  cuguest::StreamRef stream;
};

// For a stream that has no context, that of `memory`.
inline absl::StatusOr<Place> PlaceOf(CUstream stream, const void* memory) {
  const bool has_context =
      stream != nullptr && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
  cuguest::Acquired context =
      has_context ? cuguest::AcquireFromStream(stream) : cuguest::AcquireFromPointer(memory);
  if (!context.ok()) return cuguest::ToStatus(context);
  const auto ref = cuguest::StreamRef::Borrow(stream, context.context());
  return Place{std::move(context), ref};
}

inline thread_local char last_error[1000];

// For C; remembers the text.
inline int Told(const absl::Status& status) {
  if (!status.ok()) {
    std::snprintf(last_error, sizeof(last_error), "%s", status.ToString().c_str());
  }
  return status.raw_code();
}

}  // namespace hosts

#endif  // CUGUEST_TEST_HOSTS_CALLER_H_
