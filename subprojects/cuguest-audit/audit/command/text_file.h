// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file that is read as a whole. A stream of C++ throws where it can be opened and not be read, as
// a folder can, and what /proc has of a process that has just ended.
//
// Thread-safe: yes.

#ifndef CUGUEST_AUDIT_COMMAND_TEXT_FILE_H_
#define CUGUEST_AUDIT_COMMAND_TEXT_FILE_H_

#include <string>

namespace cuguest::audit {

// Returns "", or why not: "file: Is a directory". Then `text` has what could be read.
[[nodiscard]] std::string ReadTextFile(const std::string& file, std::string* text);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_TEXT_FILE_H_
