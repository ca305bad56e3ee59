// SPDX-License-Identifier: Apache-2.0
//
// Cases that need a process of their own: before cuInit, after a fork, at exit, and
// those that end in an abort or lose the device.
//
//   CHILD(pushes_a_destroyed_context) {
//     RAW(cuInit)(0);
//     ...
//     return 0;  // the exit code
//   }
//   BOOST_AUTO_TEST_CASE(...) { ChildResult result = RunChild("pushes_a_destroyed_context"); ... }
//
// The child is this very program, run with --child=NAME; it never reaches main(), so
// nothing has called cuInit there.

#ifndef CUGUEST_TEST_SUPPORT_CHILD_H_
#define CUGUEST_TEST_SUPPORT_CHILD_H_

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

extern char** environ;

namespace cuguest_test {

struct ChildResult {
  int exit_code = -1;  // -1: ended by a signal, or never ran
  int signal = 0;
  std::string output;  // stdout and stderr together
};

// Ends the process with the child's exit code if this process is that child.
inline bool RunIfChild(const char* name, int (*child)()) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string wanted = std::string(1, '\0') + "--child=" + name + '\0';
  if (line.find(wanted) != std::string::npos) std::exit(child());
  return true;
}

inline std::string ReadToEnd(int descriptor) {
  std::string text;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = read(descriptor, buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

inline ChildResult RunChild(const std::string& name) {
  ChildResult result;
  int ends[2];
  if (pipe(ends) != 0) return result;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::string program = "/proc/self/exe";
  std::string argument = "--child=" + name;
  char* arguments[] = {program.data(), argument.data(), nullptr};
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed == 0) {
    result.output = ReadToEnd(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  }
  close(ends[0]);
  return result;
}

}  // namespace cuguest_test

// In a child: prints what is not so, and ends with a failure.
#define CHILD_REQUIRE(condition)                                          \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                       \
    }                                                                     \
  } while (false)

#define CHILD(name)                                                                               \
  static int Child_##name();                                                                      \
  static const bool ran_##name [[maybe_unused]] = cuguest_test::RunIfChild(#name, &Child_##name); \
  static int Child_##name()

// The child ran to its end and found everything as expected.
#define REQUIRE_CHILD_PASSES(name)                                         \
  do {                                                                     \
    const cuguest_test::ChildResult result = cuguest_test::RunChild(name); \
    BOOST_TEST(result.exit_code == 0, name << ": " << result.output);      \
  } while (false)

#endif  // CUGUEST_TEST_SUPPORT_CHILD_H_
