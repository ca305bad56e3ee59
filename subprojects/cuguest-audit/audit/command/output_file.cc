// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cuguest::audit {

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
  file_ = std::fopen(path.c_str(), "we");
  return file_ == nullptr ? path + ": " + std::strerror(errno) : "";
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
