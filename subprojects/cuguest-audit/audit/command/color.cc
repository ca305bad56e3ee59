// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/color.h"

#include <cstdlib>

namespace cuguest::audit {

namespace {

std::string TextOrNone(const char* variable) { return variable == nullptr ? "" : variable; }

}  // namespace

ColorSurroundings SurroundingsOf(bool is_terminal) {
  return {is_terminal, std::getenv("TERM"), std::getenv("NO_COLOR"), std::getenv("CLICOLOR"),
          std::getenv("CLICOLOR_FORCE")};
}

bool WantsColors(const std::string& when, const ColorSurroundings& surroundings) {
  if (when != "auto") return when == "always";
  if (!TextOrNone(surroundings.no_color).empty()) return false;
  const std::string force = TextOrNone(surroundings.clicolor_force);
  if (!force.empty() && force != "0") return true;
  const std::string term = TextOrNone(surroundings.term);
  return surroundings.is_terminal && !term.empty() && term != "dumb" &&
         TextOrNone(surroundings.clicolor) != "0";
}

}  // namespace cuguest::audit
