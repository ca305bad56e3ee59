// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace cuguest::audit {
namespace {

// A file's lock is its writer's until it is closed. What is no file, as a terminal, has any number
// of writers.
bool HasAnotherWriter(int file) {
  struct stat status = {};
  const bool is_file = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  return is_file && flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace

std::string OutputFile::Check(const std::string& path) {
  struct stat status = {};
  int error = 0;
  if (stat(path.c_str(), &status) == 0) {
    if (faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) error = errno;
    if (S_ISDIR(status.st_mode)) error = EISDIR;
  } else if (errno == ENOENT) {
    const size_t slash = path.find_last_of('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) error = errno;
  } else {
    error = errno;
  }
  return error == 0 ? "" : path + ": " + std::strerror(error);
}

std::string OutputFile::Open(const std::string& path) {
  path_ = path;
  file_ = std::fopen(path.c_str(), "ae");
  if (file_ == nullptr) return path + ": " + std::strerror(errno);
  if (HasAnotherWriter(fileno(file_))) {
    std::fclose(std::exchange(file_, nullptr));
    return path + ": another cuguest-audit writes it";
  }
  static_cast<void>(ftruncate(fileno(file_), 0));  // of what is no file there is nothing to empty
  return "";
}

void OutputFile::Fail() {
  error_ = path_ + ": " + std::strerror(errno);
  std::fclose(file_);
  file_ = nullptr;
}

bool OutputFile::IsTerminal() const { return file_ != nullptr && isatty(fileno(file_)) == 1; }

void OutputFile::Write(const std::string& text) {
  if (file_ != nullptr && std::fwrite(text.data(), 1, text.size(), file_) != text.size()) Fail();
}

void OutputFile::Flush() {
  if (file_ != nullptr && std::fflush(file_) != 0) Fail();
}

std::string OutputFile::Close() {
  Flush();
  if (file_ != nullptr && std::fclose(file_) != 0) error_ = path_ + ": " + std::strerror(errno);
  file_ = nullptr;
  return error_;
}

}  // namespace cuguest::audit
