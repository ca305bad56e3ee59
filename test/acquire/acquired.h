// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What acquiring answers.

#ifndef CUGUEST_TEST_ACQUIRE_ACQUIRED_H_
#define CUGUEST_TEST_ACQUIRE_ACQUIRED_H_

#include <cuda.h>

#include <string>

#include "cuguest/acquire.h"
#include "cuguest/status.h"
#include "test/support/test.h"

namespace cuguest_test {

using Result = cuguest::Acquired;
using Source = cuguest::Acquired::Source;

// What went wrong; empty if the incarnation of `context` was acquired from `source`.
inline std::string Complaint(const Result& result, CUcontext context, Source source) {
  if (!result.ok()) return cuguest::ToStatus(result).ToString();
  if (result.get() != context) return "another context";
  if (!result.context().IsAlive()) return "dead";
  if (result.source() != source) return std::string("from ") + cuguest::Name(result.source());
  return "";
}

// -99: it has none.
inline int DeviceOf(const Result& result) {
  cuguest::Device device = cuguest::Device::Borrow(-99);
  return result.GetDevice(&device) == CUDA_SUCCESS ? device.get() : -99;
}

}  // namespace cuguest_test

#define ACQUIRES(result, context, source)                                      \
  do {                                                                         \
    const std::string said = cuguest_test::Complaint(result, context, source); \
    BOOST_TEST(said.empty(), #result << ": " << said);                         \
  } while (false)

#endif  // CUGUEST_TEST_ACQUIRE_ACQUIRED_H_
