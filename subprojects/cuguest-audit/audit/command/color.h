// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a report has the colours of a terminal.

#ifndef CUGUEST_AUDIT_COMMAND_COLOR_H_
#define CUGUEST_AUDIT_COMMAND_COLOR_H_

#include <string>

namespace cuguest::audit {

// What decides besides --color; null: not set.
struct ColorSurroundings {
  bool is_terminal = false;
  const char* term = nullptr;            // TERM
  const char* no_color = nullptr;        // NO_COLOR
  const char* clicolor = nullptr;        // CLICOLOR
  const char* clicolor_force = nullptr;  // CLICOLOR_FORCE
};

// Of a report that is written to a terminal, or to something else.
ColorSurroundings SurroundingsOf(bool is_terminal);

// `when`: "always", "never", or "auto": NO_COLOR that is not empty says no; otherwise
// CLICOLOR_FORCE that is neither empty nor 0 says yes; otherwise a terminal has colours, unless it
// is dumb or CLICOLOR is 0.
bool WantsColors(const std::string& when, const ColorSurroundings& surroundings);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_COLOR_H_
