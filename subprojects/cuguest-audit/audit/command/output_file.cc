// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/output_file.h"

#include <cerrno>
#include <cstring>

namespace cuguest::audit {

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
