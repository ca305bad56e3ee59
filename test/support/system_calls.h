// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Filters of system calls, as a container may have one.

#ifndef CUGUEST_TEST_SUPPORT_SYSTEM_CALLS_H_
#define CUGUEST_TEST_SUPPORT_SYSTEM_CALLS_H_

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
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
template <std::size_t kSteps>
bool Filter(sock_filter (&steps)[kSteps]) {
  sock_fprog filter = {kSteps, steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

inline bool RefuseMembarrier() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return Filter(steps);
}

// What TrapSystemCalls() says is going on.
inline thread_local const char* t_system_calls_of = "";

// From now on a system call of the calling thread, other than what says so, ends the process with 3
// and "system call NUMBER in WHAT".
inline bool TrapSystemCalls() {
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    char text[200];
    const int size = std::snprintf(text, sizeof(text), "system call %d in %s\n", info->si_syscall,
                                   t_system_calls_of);
    if (write(STDOUT_FILENO, text, static_cast<std::size_t>(size)) < 0) _exit(4);
    _exit(3);
  };
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return sigaction(SIGSYS, &action, nullptr) == 0 && Filter(steps);
}

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_SYSTEM_CALLS_H_
