// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file that is written while a program runs: what fails is said once, and nothing is written
// after it.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_OUTPUT_FILE_H_
#define CUGUEST_AUDIT_COMMAND_OUTPUT_FILE_H_

#include <cstdio>
#include <string>

namespace cuguest::audit {

class OutputFile {
 public:
  OutputFile() = default;
  ~OutputFile() { Close(); }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // What Open would return, as far as that can be seen without creating or emptying the file.
  [[nodiscard]] static std::string Check(const std::string& path);

  // Empties the file, unless another process has it open by this. Returns "", or "PATH: why it
  // cannot be written".
  std::string Open(const std::string& path);
  // Whether it is open and nothing has failed; otherwise what follows has no effect.
  [[nodiscard]] bool is_open() const { return file_ != nullptr; }

  [[nodiscard]] bool IsTerminal() const;

  void Write(const std::string& text);
  void Flush();
  // Returns "", or "PATH: why" of the first failure since it was opened.
  std::string Close();

 private:
  void Fail();

  std::string path_;
  std::string error_;
  std::FILE* file_ = nullptr;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_OUTPUT_FILE_H_
