// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/error_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "driver/api.h"
#include "driver/process.h"

namespace cudasim::driver {
namespace {

// -1: nobody asked for a log, or it cannot be written.
int OpenLog() {
  const char* const name = std::getenv("CUDA_LOG_FILE");
  if (name == nullptr) return -1;
  const std::string_view file = name;
  if (file == "stdout") return STDOUT_FILENO;
  if (file == "stderr") return STDERR_FILENO;
  return open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

}  // namespace

void LogFailure(const Entry& entry, CUresult code) {
  if (code == CUDA_ERROR_NOT_INITIALIZED && Process::IsFresh()) return;
  static const int log = OpenLog();
  if (log < 0) return;
  const char* name = "an unrecognized code";
  static_cast<void>(GetErrorName(code, &name));
  char line[200];
  const int length =
      std::snprintf(line, sizeof(line), "[%d][CUDA][E] Returning %d (%s) from %s\n",
                    static_cast<int>(getpid()), static_cast<int>(code), name, entry.symbol);
  // One call, so that lines of several threads stay whole. Nobody can be told that it failed.
  if (length > 0 && write(log, line, static_cast<size_t>(length)) < 0) return;
}

}  // namespace cudasim::driver
