// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a Stream tells those that use its stream when it ends that.                     tier: 3

#ifndef CUGUEST_LIB_OBJECTS_STREAM_STREAM_USE_H_
#define CUGUEST_LIB_OBJECTS_STREAM_STREAM_USE_H_

#include <cuda.h>

#include "cuguest/export.h"
#include "cuguest/objects/internal/stream_use.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// StreamHold
//
// Around driver calls with a stream that another object owns: what is checked of the stream, and
// the call. While it lasts nobody destroys the stream; if its Stream ends meanwhile, the last
// hold's end destroys it. It begins and ends before `use` does.
//
// Cost: two atomic operations; it waits for nobody.
class StreamHold {
 public:
  explicit StreamHold(const StreamUse& use) noexcept;  // of one that uses no stream: ok()
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;
  ~StreamHold();

  // False: the stream is destroyed, or will be, and nobody may call the driver with it.
  [[nodiscard]] bool ok() const noexcept { return !is_over_; }

  // Then: an event behind all of its work, as long as `use` lasts; nullptr if there could be none.
  [[nodiscard]] CUevent last() const noexcept { return last_; }

 private:
  UsedStream* held_ = nullptr;
  CUevent last_ = nullptr;
  bool is_over_ = false;
};

// Destroys `stream`, of a living context, for its Stream: every StreamUse of it that there is
// learns of it, and no later one of another stream with the same handle. Where a StreamHold has it
// the last of them destroys it, and this returns CUDA_SUCCESS. If the driver refuses it, it has not
// ended.
//
// Cost: no other driver call if nobody uses the stream.
CUresult EndStream(const StreamRef& stream) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_STREAM_STREAM_USE_H_
