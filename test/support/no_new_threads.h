// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef CUGUEST_TEST_SUPPORT_NO_NEW_THREADS_H_
#define CUGUEST_TEST_SUPPORT_NO_NEW_THREADS_H_

#include <pthread.h>

#include <cstddef>

namespace cuguest_test {

// No thread can be created while it lives: its stack would be larger than the address space.
class NoNewThreads {
 public:
  NoNewThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge = before_;
    pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    pthread_setattr_default_np(&huge);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;
  ~NoNewThreads() { pthread_setattr_default_np(&before_); }

 private:
  pthread_attr_t before_;
};

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_NO_NEW_THREADS_H_
