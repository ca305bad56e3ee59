// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/support/child.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "test/support/raw_driver.h"

extern char** environ;

namespace cudasim_test {
namespace {

std::string NameOf(const std::string& entry) { return entry.substr(0, entry.find('=')); }

std::vector<std::string> Environment(const std::vector<std::string>& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool changed = false;
    for (const std::string& change : changes) changed = changed || NameOf(change) == NameOf(*entry);
    if (!changed) entries.emplace_back(*entry);
  }
  for (const std::string& change : changes) {
    if (change.find('=') != std::string::npos) entries.push_back(change);
  }
  return entries;
}

// An emulator of another processor starts no program of that processor: it is started anew itself.
std::vector<std::string> Self() {
  const char* emulator = std::getenv("CUDASIM_TEST_EMULATOR");
  if (emulator == nullptr) return {"/proc/self/exe"};
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) std::abort();
  return {emulator, std::string(path, static_cast<std::size_t>(length))};
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Ended RunSelf(const std::vector<std::string>& arguments,
              const std::vector<std::string>& environment) {
  Ended ended;
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::vector<std::string> argv = Self();
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  std::vector<std::string> envp = Environment(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  if (posix_spawnp(&child, argv[0].c_str(), &actions, nullptr, Pointers(argv).data(),
                   Pointers(envp).data()) != 0) {
    std::abort();
  }
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(ends[0], buffer, sizeof(buffer))) > 0) {
    ended.output.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return ended;
}

// A value holds zeros: two letters stand for each byte.
std::string VariableOfBytes(const char* name, const void* bytes, std::size_t size) {
  std::string text = name + std::string("=");
  for (std::size_t i = 0; i < size; ++i) {
    const unsigned char byte = static_cast<const unsigned char*>(bytes)[i];
    text += static_cast<char>('a' + (byte >> 4));
    text += static_cast<char>('a' + (byte & 15));
  }
  return text;
}

void ReadVariableOfBytes(const char* name, void* bytes, std::size_t size) {
  const char* const text = std::getenv(name);
  CHECK(text != nullptr && std::strlen(text) == 2 * size);
  for (std::size_t i = 0; i < size; ++i) {
    static_cast<unsigned char*>(bytes)[i] =
        static_cast<unsigned char>((text[2 * i] - 'a') << 4 | (text[2 * i + 1] - 'a'));
  }
}

CUcontext MakeContext() {
  using CtxCreate = CUresult (*)(CUcontext*, unsigned, CUdevice);
  CUcontext context = nullptr;
  CUcontext popped = nullptr;
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CHECK(RAW_AS(CtxCreate, "cuCtxCreate_v2")(&context, 0, 0) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
  return context;
}

void CheckFailed(const char* file, int line, const char* what) {
  std::printf("%s:%d: not so: %s\n", file, line, what);
  std::fflush(stdout);
  _exit(1);
}

}  // namespace cudasim_test
