// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stream 0 in a file that is compiled for per-thread default streams. Elsewhere it is the legacy
// stream: test/objects/stream/stream_test.cc.

#include "cuguest/objects/stream.h"
#include "test/objects/stream/streams.h"

#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
#error "test/meson.build compiles this file for per-thread default streams"
#endif

using namespace cuguest_streams;

BOOST_AUTO_TEST_SUITE(per_thread_zero)

BOOST_AUTO_TEST_CASE(zero_is_the_threads_own_stream) {
  const OwnContext context;
  SetStack({context.get()});
  const absl::StatusOr<StreamRef> borrowed = StreamRef::Borrow(nullptr);
  BOOST_REQUIRE(borrowed.ok());
  BOOST_TEST(borrowed->get() == CU_STREAM_PER_THREAD);
  BOOST_TEST(StreamRef::Borrow(nullptr, RefTo(context)).get() == CU_STREAM_PER_THREAD);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_stream_that_is_named_stays_what_it_is) {
  const OwnContext context;
  for (const CUstream stream : {CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    BOOST_TEST(StreamRef::Borrow(stream, RefTo(context)).get() == stream);
  }
}

BOOST_AUTO_TEST_SUITE_END()
