// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
//
// Not for embedders. How what is to be freed in the order of a stream learns that a Stream
// (stream.h) has ended the stream before.

#ifndef CUGUEST_OBJECTS_INTERNAL_STREAM_USE_H_
#define CUGUEST_OBJECTS_INTERNAL_STREAM_USE_H_

#include <cuda.h>

#include <utility>

#include "cuguest/export.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

class StreamHold;
struct UsedStream;

// StreamUse
//
// A driver call with the stream is made in a StreamHold (lib/objects/stream/stream_use.h).
//
// Threads: distinct objects from any threads. No lock is held across a driver call.
class CUGUEST_API StreamUse {
 public:
  CUGUEST_HIDE StreamUse() noexcept = default;
  CUGUEST_HIDE StreamUse(StreamUse&& other) noexcept : used_(std::exchange(other.used_, nullptr)) {}
  CUGUEST_HIDE StreamUse& operator=(StreamUse other) noexcept {
    std::swap(used_, other.used_);
    return *this;
  }
  CUGUEST_HIDE ~StreamUse() {
    if (used_ != nullptr) End();
  }

  // Of `stream`, which is there. False if there is no host memory.
  [[nodiscard]] bool Begin(const StreamRef& stream) noexcept;

 private:
  friend class StreamHold;
  void End() noexcept;

  UsedStream* used_ = nullptr;
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_OBJECTS_INTERNAL_STREAM_USE_H_
