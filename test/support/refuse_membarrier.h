// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A system call filter, as a container may have one, that refuses membarrier(2).

#ifndef CUGUEST_TEST_SUPPORT_REFUSE_MEMBARRIER_H_
#define CUGUEST_TEST_SUPPORT_REFUSE_MEMBARRIER_H_

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <string>

namespace cuguest_test {

// Of a Scenario: a filter that is nowhere is refused as a bad address where there are filters, and
// an emulator has none.
inline std::string SkipWithoutFilters() {
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr);
  return errno == EFAULT ? "" : "needs a kernel with system call filters";
}

// For the calling thread and those that it starts, to their end. False where the kernel has no
// filters.
inline bool RefuseMembarrier() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter = {sizeof(steps) / sizeof(steps[0]), steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_REFUSE_MEMBARRIER_H_
