// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The audited program, run as a child.
//
// Thread-safe: no; one at a time, since the signals of the process are its own meanwhile.

#ifndef CUGUEST_AUDIT_COMMAND_PROGRAM_H_
#define CUGUEST_AUDIT_COMMAND_PROGRAM_H_

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace cuguest::audit {

class Program {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  // How the calling process takes signals, whatever it has inherited: the end of a child is to be
  // waited for, and a file beyond the file-size limit is an error and not a signal. The program
  // inherits them as they were.
  static void SetSignals();

  // Starts `words`, as execvp does, with these variables in addition. If it cannot be run, `error`
  // says why and `exit_status` is 127 if it was not found, else 126.
  Program(char** words, const Environment& environment);
  // Restores the signals that the constructor blocked.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

  // Waits for its end, `milliseconds` at most and no longer than until the descriptor `or_for` can
  // be read; true if it has ended. Meanwhile SIGINT, SIGQUIT,
  // SIGTERM and SIGHUP that another process sent are passed on to it; those of the terminal it
  // has got itself.
  bool WaitFor(int milliseconds, int or_for);

  // Its exit status, or 128 and the number of the signal that terminated it.
  [[nodiscard]] int exit_status() const { return exit_status_; }
  // 0 if it was not terminated by a signal.
  [[nodiscard]] int signal() const { return signal_; }

 private:
  void RunChild(char** words, const Environment& environment, int error_pipe);
  void PassOn();
  bool Reap();

  sigset_t mask_before_;
  int signals_ = -1;  // a descriptor
  pid_t pid_ = -1;
  bool ended_ = false;
  int exit_status_ = 126;
  int signal_ = 0;
  std::string error_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_PROGRAM_H_
