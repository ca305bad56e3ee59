// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One link of a Linker: what is linked, by whom, and how messages name it. Its sources go one way:
//
//   linker.cc -> link_nvjitlink.cc -> link.cc                                              tier: 3

#ifndef CUGUEST_LIB_OBJECTS_CODE_LINK_H_
#define CUGUEST_LIB_OBJECTS_CODE_LINK_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/export.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/jit.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct LinkJob {
  const ObjectDriver& driver;
  const std::vector<CodeImage>& inputs;  // one at least
  const JitOptions& options;
};

// "sm_90" of 90, "sm_90a" of CU_TARGET_COMPUTE_90A.
std::string TargetText(CUjit_target target);

// "a.ptx, b.ptx and 3 more".
std::string InputsText(const std::vector<CodeImage>& inputs);

// "input 2 of 5, b.ptx".
std::string InputText(const std::vector<CodeImage>& inputs, std::size_t index);

// Whether a linker's error log tells of an error, and not of nothing or a warning. The code
// that comes with it is by chance, success among them; the log is not.
// Source: cudasim/test/link_facts_test.cc.
bool SaysError(std::string_view log);

// Both for the current context. `report` may be null, and is filled in on failure too.

// By the driver's own linker, which takes no LTO IR.
absl::StatusOr<CodeImage> LinkByDriver(const LinkJob& job, JitReport* report);

// LTO IR, with other inputs or without.
absl::StatusOr<CodeImage> LinkByNvJitLink(const LinkJob& job, JitReport* report);

// Whether a symbol that two inputs without LTO IR define is in the way: the driver says which,
// where nvJitLink prints it to stderr and takes the first, or crashes if it has linked before
// (13.0). Whatever else is wrong with the inputs is not said here.
absl::Status CheckDefinedOnce(const LinkJob& job);

// Gives `state`, a linker's, all `inputs` and takes the image. `failed(code, object, input)` is the
// status of a code that is not 0; `input` is null where it is about all of them.
template <typename State, typename Failed>
absl::StatusOr<CodeImage> LinkIn(State* state, const std::vector<CodeImage>& inputs,
                                 const Failed& failed) {
  if (const auto code = state->result(); code != 0) {
    return failed(code, InputsText(inputs), nullptr);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (const auto code = state->Add(inputs[i]); code != 0) {
      return failed(code, InputText(inputs, i), &inputs[i]);
    }
  }
  HostSpan<const unsigned char> image;  // the state's
  if (const auto code = state->Complete(&image); code != 0) {
    return failed(code, InputsText(inputs), nullptr);
  }
  return CodeImage::Copy(image, InputsText(inputs));
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_CODE_LINK_H_
