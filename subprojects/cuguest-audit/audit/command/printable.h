// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names as a terminal may show them: those of processes, libraries and functions may hold anything.

#ifndef CUGUEST_AUDIT_COMMAND_PRINTABLE_H_
#define CUGUEST_AUDIT_COMMAND_PRINTABLE_H_

#include <string>

namespace cuguest::audit {

// `text` with control characters as \n, \t or \x1b, also those that UTF-8 has two bytes for.
[[nodiscard]] std::string Printable(const std::string& text);

// `text` with a ? for each byte of a control character: a pattern that matches it.
[[nodiscard]] std::string PrintablePattern(std::string text);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_PRINTABLE_H_
