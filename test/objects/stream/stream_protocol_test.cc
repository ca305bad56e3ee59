// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams by the numbers of array protocols.

#include "cuguest/objects/stream_protocol.h"

#include <limits>

#include "test/objects/stream/streams.h"

BOOST_AUTO_TEST_SUITE(stream_protocol)

using namespace cuguest_streams;
using cuguest::StreamOfArrayInterface;
using cuguest::StreamOfDlpack;
using Found = absl::StatusOr<std::optional<StreamRef>>;

namespace {

constexpr std::int64_t kLegacy = 1;
constexpr std::int64_t kPerThread = 2;

std::int64_t NumberOf(CUstream stream) { return reinterpret_cast<std::intptr_t>(stream); }

void CheckRefused(const absl::Status& status, const char* text) {
  BOOST_TEST(absl::IsInvalidArgument(status));
  BOOST_TEST(Mentions(status, text), status.message());
}

}  // namespace

BOOST_AUTO_TEST_CASE(default_streams_are_those_of_the_arrays_context) {
  const OwnContext array;
  const OwnContext current;
  const ContextRef context = RefTo(array);
  SetStack({current.get()});
  for (const auto find : {&StreamOfDlpack, &StreamOfArrayInterface}) {
    for (const auto& [number, stream] :
         {std::pair{kLegacy, CU_STREAM_LEGACY}, std::pair{kPerThread, CU_STREAM_PER_THREAD}}) {
      const Found found = find(number, context);
      OK(Said(found.status()));
      BOOST_REQUIRE(found->has_value());
      BOOST_TEST((*found)->get() == stream);
      BOOST_CHECK((*found)->context() == context);
      OK(Said((*found)->Synchronize()));
      BOOST_TEST(StreamNumber(**found).value() == number);
    }
  }
  BOOST_TEST(GetStack() == Entries{current.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(created_stream_has_its_own_context) {
  const OwnContext home;
  const OwnContext array;
  const Stream stream = MakeStream(RefTo(home));
  const std::int64_t number = NumberOf(stream.get());
  BOOST_TEST(StreamNumber(stream).value() == number);
  for (const auto find : {&StreamOfDlpack, &StreamOfArrayInterface}) {
    for (const ContextRef& context : {RefTo(array), ContextRef()}) {
      const Found found = find(number, context);
      OK(Said(found.status()));
      BOOST_REQUIRE(found->has_value());
      BOOST_CHECK(**found == stream.ref());
    }
  }
  const auto found = StreamOfCudaStream(0, number, RefTo(array));
  OK(Said(found.status()));
  BOOST_CHECK(*found == stream.ref());
}

BOOST_AUTO_TEST_CASE(none_is_the_legacy_stream_of_dlpack_and_no_stream_of_an_array_interface) {
  const OwnContext array;
  const Found dlpack = StreamOfDlpack(std::nullopt, RefTo(array));
  OK(Said(dlpack.status()));
  BOOST_REQUIRE(dlpack->has_value());
  BOOST_TEST((*dlpack)->get() == CU_STREAM_LEGACY);
  const Found interface = StreamOfArrayInterface(std::nullopt, ContextRef());
  OK(Said(interface.status()));
  BOOST_TEST(!interface->has_value());
}

BOOST_AUTO_TEST_CASE(minus_one_is_no_stream_of_dlpack_and_refused_elsewhere) {
  const OwnContext array;
  const Found dlpack = StreamOfDlpack(-1, ContextRef());
  OK(Said(dlpack.status()));
  BOOST_TEST(!dlpack->has_value());
  CheckRefused(StreamOfArrayInterface(-1, RefTo(array)).status(), "no negative number");
  CheckRefused(StreamOfCudaStream(0, -1, RefTo(array)).status(), "no negative number");
}

BOOST_AUTO_TEST_CASE(forbidden_numbers) {
  const OwnContext array;
  CheckRefused(StreamOfDlpack(0, RefTo(array)).status(),
               "DLPack's stream, number 0: it is forbidden");
  CheckRefused(StreamOfArrayInterface(0, RefTo(array)).status(),
               "CUDA array interface, number 0: it is forbidden");
  for (const std::int64_t number : {std::int64_t{-2}, std::numeric_limits<std::int64_t>::min()}) {
    CheckRefused(StreamOfDlpack(number, RefTo(array)).status(), "no negative number");
  }
}

BOOST_AUTO_TEST_CASE(zero_of_a_cuda_stream_is_what_it_is_in_the_file) {
  const OwnContext array;
  const auto found = StreamOfCudaStream(0, 0, RefTo(array));
  OK(Said(found.status()));
  BOOST_TEST(found->get() == nullptr);  // this file has the legacy stream
  BOOST_TEST(StreamNumber(*found).value() == kLegacy);
  const auto per_thread =
      StreamOfCudaStream(0, 0, RefTo(array), cuguest::internal::ZeroStream::kPerThread);
  OK(Said(per_thread.status()));
  BOOST_TEST(StreamNumber(*per_thread).value() == kPerThread);
}

BOOST_AUTO_TEST_CASE(version_that_is_not_known) {
  const OwnContext array;
  for (const int version : {-1, 1}) {
    CheckRefused(StreamOfCudaStream(version, 1, RefTo(array)).status(), "only version 0 is known");
  }
}

BOOST_AUTO_TEST_CASE(default_stream_without_a_context) {
  CheckRefused(StreamOfDlpack(std::nullopt, ContextRef()).status(), "pass the array's");
  CheckRefused(StreamOfArrayInterface(2, ContextRef()).status(), "pass the array's");
  CheckRefused(StreamOfCudaStream(0, 0, ContextRef()).status(), "pass the array's");
}

BOOST_AUTO_TEST_CASE(no_stream_has_no_number) {
  CheckRefused(StreamNumber(StreamRef()).status(), "the StreamRef is empty");
}

BOOST_AUTO_TEST_SUITE_END()
