// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies in a batch.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "test/capture.h"

BOOST_AUTO_TEST_SUITE(batch_copy_facts)

using namespace cudasim_facts;

namespace {

constexpr size_t kCopies = 3;

// Copies of four bytes each, from the host to the device.
struct Batch : Guest {
  Batch() {
    for (size_t i = 0; i < kCopies; ++i) {
      values[i] = static_cast<unsigned>(i + 1);
      to.push_back(memory + 8 * i);
      from.push_back(reinterpret_cast<CUdeviceptr>(&values[i]));
      sizes.push_back(sizeof(unsigned));
    }
    for (CUmemcpyAttributes& attribute : attributes) {
      attribute.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    }
  }

  CUresult Copy(CUstream in) {
    return RAW(cuMemcpyBatchAsync)(to.data(), from.data(), sizes.data(), kCopies, attributes.data(),
                                   indices.data(), indices.size(), in);
  }
  CUresult Copy() { return Copy(stream); }

  using First = CUresult (*)(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*,
                             size_t*, size_t, size_t*, CUstream);
  CUresult CopyFirst(size_t* failed) {
    return RAW_AS(First, "cuMemcpyBatchAsync")(to.data(), from.data(), sizes.data(), kCopies,
                                               attributes.data(), indices.data(), indices.size(),
                                               failed, stream);
  }

  unsigned At(size_t i) const {
    unsigned value = 0;
    OK(RAW(cuStreamSynchronize)(stream));
    OK(RAW(cuMemcpyDtoH)(&value, to[i], sizeof(value)));
    return value;
  }

  unsigned values[kCopies] = {};
  std::vector<CUdeviceptr> to;
  std::vector<CUdeviceptr> from;
  std::vector<size_t> sizes;
  std::vector<CUmemcpyAttributes> attributes = std::vector<CUmemcpyAttributes>(2);
  std::vector<size_t> indices = {0, 2};
};

}  // namespace

BOOST_AUTO_TEST_CASE(all_copies_of_a_batch_are_made) {
  Batch batch;
  OK(batch.Copy());
  for (size_t i = 0; i < kCopies; ++i) BOOST_TEST(batch.At(i) == i + 1);
  batch.values[1] = 20;
  size_t failed = 5;
  OK(batch.CopyFirst(&failed));
  BOOST_TEST(batch.At(1) == 20u);
}

BOOST_AUTO_TEST_CASE(a_capture_refuses_a_batch_and_goes_on) {
  Batch batch;
  OK(RAW(cuMemsetD8)(batch.memory, 0, 64));
  OK(Begin(batch.stream));
  IS(batch.Copy(), STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(batch.stream, &graph));
  BOOST_TEST(batch.At(2) == 0u);
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_CASE(a_lost_capture_takes_no_batch, *cudasim_test::OnlySim()) {
  Batch batch;
  OK(Begin(batch.stream));
  IS(RAW(cuStreamQuery)(batch.stream), STREAM_CAPTURE_UNSUPPORTED);
  IS(batch.Copy(), STREAM_CAPTURE_INVALIDATED);
  IS(End(batch.stream), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_CASE(each_copy_needs_attributes) {
  const std::vector<std::vector<size_t>> bad = {{}, {1}, {0, 0}, {0, 3}, {0, 1, 2, 3}};
  for (const auto& indices : bad) {
    Batch batch;
    batch.indices = indices;
    batch.attributes.resize(std::max<size_t>(indices.size(), 1), batch.attributes[0]);
    IS(batch.Copy(), INVALID_VALUE);
  }
  Batch batch;
  batch.attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
  IS(batch.Copy(), INVALID_VALUE);
  size_t failed = 0;
  IS(batch.CopyFirst(&failed), INVALID_VALUE);
  BOOST_TEST(failed == SIZE_MAX);
}

BOOST_AUTO_TEST_CASE(the_legacy_stream_takes_no_batch) {
  Batch batch;
  IS(batch.Copy(nullptr), INVALID_VALUE);
  IS(batch.Copy(CU_STREAM_LEGACY), INVALID_VALUE);
  OK(batch.Copy(CU_STREAM_PER_THREAD));
  OK(RAW(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
}

BOOST_AUTO_TEST_CASE(the_first_form_says_which_copy_is_refused, *cudasim_test::OnlySim()) {
  Batch batch;
  batch.to[1] = 0;
  size_t failed = 0;
  IS(batch.CopyFirst(&failed), INVALID_VALUE);
  BOOST_TEST(failed == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
