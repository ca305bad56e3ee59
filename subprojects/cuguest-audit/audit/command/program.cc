// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace cuguest::audit {

namespace {

constexpr int kPassedOn[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

const struct {
  int signal;
  void (*handler)(int);
} kOwn[] = {{SIGCHLD, SIG_DFL}, {SIGXFSZ, SIG_IGN}};
struct sigaction inherited[std::size(kOwn)];

sigset_t Waited() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int signal : kPassedOn) sigaddset(&set, signal);
  return set;
}

}  // namespace

void Program::SetSignals() {
  for (std::size_t i = 0; i < std::size(kOwn); ++i) {
    struct sigaction own = {};
    own.sa_handler = kOwn[i].handler;
    sigaction(kOwn[i].signal, &own, &inherited[i]);
  }
}

Program::Program(char** words, const Environment& environment) {
  const sigset_t waited = Waited();
  sigprocmask(SIG_BLOCK, &waited, &mask_before_);
  int error_pipe[2];
  signals_ = signalfd(-1, &waited, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0 || pipe2(error_pipe, O_CLOEXEC) != 0) {
    error_ = std::string("no descriptor to wait with: ") + std::strerror(errno);
    return;
  }
  pid_ = fork();
  const int fork_error = errno;
  if (pid_ == 0) RunChild(words, environment, error_pipe[1]);
  close(error_pipe[1]);
  int why = pid_ < 0 ? fork_error : 0;
  if (pid_ > 0 && read(error_pipe[0], &why, sizeof(why)) != sizeof(why)) why = 0;
  close(error_pipe[0]);
  if (why == 0) return;
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  pid_ = -1;
  error_ = std::string(words[0]) + ": " + std::strerror(why);
  exit_status_ = why == ENOENT ? 127 : 126;
}

Program::~Program() {
  if (signals_ >= 0) close(signals_);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

void Program::RunChild(char** words, const Environment& environment, int error_pipe) {
  for (std::size_t i = 0; i < std::size(kOwn); ++i) {
    if (inherited[i].sa_handler == SIG_IGN) ::signal(kOwn[i].signal, SIG_IGN);
    if (inherited[i].sa_handler == SIG_DFL) ::signal(kOwn[i].signal, SIG_DFL);
  }
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  execvp(words[0], words);
  const int why = errno;
  const ssize_t written = write(error_pipe, &why, sizeof(why));
  _exit(written == sizeof(why) ? 0 : 126);
}

bool Program::WaitFor(int milliseconds, int or_for) {
  pollfd waited[] = {{signals_, POLLIN, 0}, {or_for, POLLIN, 0}};
  poll(waited, std::size(waited), milliseconds);
  PassOn();
  return Reap();
}

void Program::PassOn() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    // The kernel sends a terminal's signals to all processes of the foreground.
    if (signal != SIGCHLD && info.ssi_code <= 0 && !ended_) kill(pid_, signal);
  }
}

bool Program::Reap() {
  int status = 0;
  if (ended_ || waitpid(pid_, &status, WNOHANG) != pid_) return ended_;
  ended_ = true;
  signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  exit_status_ = signal_ != 0 ? 128 + signal_ : WEXITSTATUS(status);
  return true;
}

}  // namespace cuguest::audit
