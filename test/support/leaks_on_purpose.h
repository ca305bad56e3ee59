// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is lost on purpose.

#ifndef CUGUEST_TEST_SUPPORT_LEAKS_ON_PURPOSE_H_
#define CUGUEST_TEST_SUPPORT_LEAKS_ON_PURPOSE_H_

// Of LeakSanitizer, in a program that has it.
extern "C" {
void __lsan_disable() __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)
void __lsan_enable() __attribute__((weak));   // NOLINT(bugprone-reserved-identifier)
}

namespace cuguest_test {

// LeakSanitizer does not look for what this thread allocates meanwhile.
class LeaksOnPurpose {
 public:
  LeaksOnPurpose() {
    if (__lsan_disable != nullptr) __lsan_disable();
  }
  LeaksOnPurpose(const LeaksOnPurpose&) = delete;
  LeaksOnPurpose& operator=(const LeaksOnPurpose&) = delete;
  ~LeaksOnPurpose() {
    if (__lsan_enable != nullptr) __lsan_enable();
  }
};

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_LEAKS_ON_PURPOSE_H_
