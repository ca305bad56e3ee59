// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a Stream tells those that use its stream when it ends that.                     tier: 3

#ifndef CUGUEST_LIB_STREAM_STREAM_USE_H_
#define CUGUEST_LIB_STREAM_STREAM_USE_H_

#include <cuda.h>

#include "cuguest/export.h"
#include "cuguest/internal/stream_use.h"
#include "cuguest/stream.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// EndOfStream
//
// Around the driver's call that destroys `stream`, of a living context: every StreamUse of it that
// there is learns of it, and no later one of another stream with the same handle.
//
// Cost: no driver call if nobody uses the stream.
class EndOfStream {
 public:
  explicit EndOfStream(const StreamRef& stream) noexcept;
  EndOfStream(const EndOfStream&) = delete;
  EndOfStream& operator=(const EndOfStream&) = delete;
  ~EndOfStream();

  // The driver has refused it.
  void Undo() noexcept;

 private:
  UsedStream* const used_;  // nullptr if nobody uses it
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_STREAM_STREAM_USE_H_
