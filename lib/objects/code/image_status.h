// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a Module asks of its image, and what is said of code that cannot be used. tier: 3

#ifndef CUGUEST_LIB_OBJECTS_CODE_IMAGE_STATUS_H_
#define CUGUEST_LIB_OBJECTS_CODE_IMAGE_STATUS_H_

#include <cuda.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/driver.h"
#include "lib/objects/code/function_in_context.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// What a Module asks of its image beyond what everybody may ask.
struct ImageAccess {
  static std::map<std::string, KernelInImage> Kernels(const CodeImage& image);
  // CodeContents::targets
  static const std::vector<std::string>& Targets(const CodeImage& image);
};

// A compiler's or linker's log behind an error, on lines of its own; empty if it is.
std::string LogText(std::string_view log);

// As ToStatus(), with the compiler's words behind it, if it said any.
absl::Status CodeStatus(CUresult code, std::string_view doing, std::string_view object,
                        std::string_view log);

// "sm_80, PTX for sm_90": what the image is for, as far as that can be read off it.
std::string TargetsText(const CodeImage& image);

// As CodeStatus(), of an image that is for `targets`, which the text has where no code in it fits
// the device.
absl::Status ImageStatus(CUresult code, std::string_view doing, std::string_view object,
                         std::string_view log, const std::string& targets);

// `wanted` is none of `names`, the kernels of `image` that are known.
absl::Status NoSuchKernel(std::string_view wanted, std::string_view image,
                          const std::vector<std::string>& names);

// Whether the driver can be asked for something of that name at all.
absl::Status CheckName(std::string_view doing, std::string_view name);

// "context 0x5581 on device 0 (compute capability 9.0)". The context is current.
std::string PlaceText(const ObjectDriver& driver, const ContextRef& context);

// "for device 0 (compute capability 9.0), 1 (compute capability 9.0)": of what is loaded for all.
// Empty if the driver does not say.
std::string DevicesText(const ObjectDriver& driver);

// The doing of loading the image, and of finding a variable in it.
std::string LoadText(const CodeImage& image);
std::string FindVariableText(std::string_view variable, std::string_view image);

// The kernels of `image`, if all can be read off it.
absl::StatusOr<std::vector<std::string>> ReadableNames(const CodeImage& image);

// "\"name\""
std::string Quoted(std::string_view name);

// What has no name is called: empty, and never destroyed.
const std::string& NoName() noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_CODE_IMAGE_STATUS_H_
