// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/panic.h"

#include <execinfo.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace cudasim::driver {
namespace {

std::atomic<void (*)()> run_before_abort{nullptr};
thread_local bool runs_no_handler = false;

[[noreturn]] void Abort() {
  if (const auto run = run_before_abort.exchange(nullptr)) run();
  std::fflush(stderr);
  void* frames[64];
  const int count = backtrace(frames, 64);
  backtrace_symbols_fd(frames, count, STDERR_FILENO);
  if (runs_no_handler) std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

}  // namespace

void BeforePanicAborts(void (*run)()) { run_before_abort.store(run); }

void RunNoHandlerInPanic() { runs_no_handler = true; }

void Panic(const char* format, ...) {
  std::fputs("cudasim: ", stderr);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  Abort();
}

}  // namespace cudasim::driver
