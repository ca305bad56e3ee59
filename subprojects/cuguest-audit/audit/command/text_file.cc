// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/text_file.h"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace cuguest::audit {

std::string ReadTextFile(const std::string& file, std::string* text) {
  text->clear();
  std::FILE* stream = std::fopen(file.c_str(), "re");
  if (stream == nullptr) return file + ": " + std::strerror(errno);
  char part[4096];
  while (const std::size_t size = std::fread(part, 1, sizeof(part), stream)) {
    text->append(part, size);
  }
  const int error = std::ferror(stream) != 0 ? errno : 0;
  std::fclose(stream);
  return error == 0 ? "" : file + ": " + std::strerror(error);
}

}  // namespace cuguest::audit
