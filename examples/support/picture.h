// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pictures of the calling thread's stack of contexts, with names in place of handles:
//
//   [X] [A] [B]<
//
// is read from the bottom up; the mark stands at the top, the current context.

#ifndef CUGUEST_EXAMPLES_SUPPORT_PICTURE_H_
#define CUGUEST_EXAMPLES_SUPPORT_PICTURE_H_

#include <cuda.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuguest/testing/stack_probe.h"

namespace support {

// The names of the contexts in the pictures.
//
// Threads: naming needs outside locking; drawing may go on in several threads.
class Cast {
 public:
  // A handle has one name, and a name one handle: the last one that was set.
  void Name(const std::string& name, CUcontext context);

  // The calling thread's stack, now or in `probe`.
  [[nodiscard]] std::string Draw() const;
  [[nodiscard]] std::string Draw(const cuguest::testing::StackProbe& probe) const;

  // "?" if it has none.
  [[nodiscard]] std::string NameOf(CUcontext context) const;

 private:
  std::vector<std::pair<std::string, CUcontext>> names_;
};

// Prints "   when              [X] [A]<          remark".
void PrintRow(const std::string& when, const std::string& picture, const std::string& remark = "");

// Prints `text`, indented under a row and broken between words at 80 columns.
void PrintParagraph(std::string_view text);

// The same line by line, for example of a compiler's log.
void PrintLines(std::string_view text);

// Prints a numbered heading: the next scene of the example.
void PrintScene(const char* title);

}  // namespace support

#endif  // CUGUEST_EXAMPLES_SUPPORT_PICTURE_H_
