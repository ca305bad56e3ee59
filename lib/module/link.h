// SPDX-License-Identifier: Apache-2.0
//
// One link, by the driver or by nvJitLink.                              tier: 3

#ifndef CUGUEST_LIB_MODULE_LINK_H_
#define CUGUEST_LIB_MODULE_LINK_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// Both link for the current context. `report` may be null, and is filled in on failure too.
absl::StatusOr<CodeImage> LinkByDriver(const LinkJob& job, JitReport* report);
absl::StatusOr<CodeImage> LinkByNvJitLink(const LinkJob& job, JitReport* report);

// Whether a symbol that two inputs without LTO IR define is in the way: the driver says which,
// where nvJitLink prints it to stderr and takes the first, or crashes if it has linked before
// (13.0). Whatever else is wrong with the inputs is not said here.
absl::Status CheckDefinedOnce(const LinkJob& job);

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

#endif  // CUGUEST_LIB_MODULE_LINK_H_
