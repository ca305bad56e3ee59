// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// operator new of the test program, which can be told to fail.

#ifndef CUGUEST_TEST_FAULTS_HOST_MEMORY_H_
#define CUGUEST_TEST_FAULTS_HOST_MEMORY_H_

#include <cstddef>

namespace cuguest_faults {

// While it lives, counts what this thread asks operator new for, and refuses the `failing`th such
// request: with std::bad_alloc, or nullptr where that was asked for. What the simulation needs for
// itself is neither counted nor refused.
class HostMemoryFault {
 public:
  explicit HostMemoryFault(size_t failing) noexcept;
  HostMemoryFault(const HostMemoryFault&) = delete;
  HostMemoryFault& operator=(const HostMemoryFault&) = delete;
  ~HostMemoryFault();

  // Whether there were so many.
  bool has_failed() const noexcept;
};

}  // namespace cuguest_faults

#endif  // CUGUEST_TEST_FAULTS_HOST_MEMORY_H_
