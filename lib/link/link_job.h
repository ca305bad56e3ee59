// SPDX-License-Identifier: Apache-2.0
//
// What is linked, and how messages name it. The sources of this room go one way:
//
//   linker.cc -> lto_link.cc -> driver_link.cc -> link_job.cc                              tier: 3

#ifndef CUGUEST_LIB_LINK_LINK_JOB_H_
#define CUGUEST_LIB_LINK_LINK_JOB_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cuguest/code_image.h"
#include "cuguest/driver.h"
#include "cuguest/export.h"
#include "cuguest/jit.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

struct LinkJob {
  const Driver& driver;
  const std::vector<CodeImage>& inputs;  // one at least
  const JitOptions& options;
};

// "a.ptx, b.ptx and 3 more".
std::string InputsText(const std::vector<CodeImage>& inputs);

// "input 2 of 5, b.ptx".
std::string InputText(const std::vector<CodeImage>& inputs, std::size_t index);

// Whether a linker's error log tells of an error, and not of nothing or a warning. The code
// that comes with it is by chance, success among them; the log is not.
// Source: cudasim/test/link_facts_test.cc.
bool SaysError(std::string_view log);

// A log behind an error, on lines of its own; empty if it is.
std::string LogText(std::string_view log);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_LINK_LINK_JOB_H_
