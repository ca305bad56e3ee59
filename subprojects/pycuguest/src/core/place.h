// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The place of a guard in Python code.

#ifndef PYCUGUEST_CORE_PLACE_H_
#define PYCUGUEST_CORE_PLACE_H_

namespace pycuguest {

struct Place {
  const char* file = "(no Python code)";
  int line = 0;
};

// That of the Python code that is running. The name of its file is never freed.
Place CallersPlace();

}  // namespace pycuguest

#endif  // PYCUGUEST_CORE_PLACE_H_
