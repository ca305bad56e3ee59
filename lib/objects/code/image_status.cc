// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/objects/code/image_status.h"

#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cuguest/status.h"
#include "lib/core/image_namespace.h"
#include "lib/image/include/cudaimage/kernel_names.h"
#include "lib/objects/code/function_in_context.h"
#include "lib/status/error_status.h"
#include "lib/status/object_text.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

std::string LogText(std::string_view log) {
  std::string text(log);
  text.resize(text.find_last_not_of(" \n") + 1);
  return text.empty() ? text : "\n" + text;
}

absl::Status CodeStatus(CUresult code, std::string_view doing, std::string_view object,
                        std::string_view log) {
  const std::string said = LogText(log);
  if (code == CUDA_SUCCESS || said.empty()) return ToStatus(code, doing, object);
  return ErrorStatus(
      code, doing, object,
      absl::StrCat(ErrorName(code), " (", static_cast<int>(code), "): ", ErrorText(code), said));
}

std::string TargetsText(const CodeImage& image) {
  return absl::StrJoin(ImageAccess::Targets(image), ", ");
}

absl::Status ImageStatus(CUresult code, std::string_view doing, std::string_view object,
                         std::string_view log, const std::string& targets) {
  if (code != CUDA_ERROR_NO_BINARY_FOR_GPU) return CodeStatus(code, doing, object, log);
  const std::string kUnknown = "nothing whose target can be read";
  return ErrorStatus(
      code, doing, object,
      absl::StrCat(ErrorName(code), " (", static_cast<int>(code), "): ", ErrorText(code),
                   "; the image holds ", targets.empty() ? kUnknown : targets, LogText(log)));
}

absl::Status NoSuchKernel(std::string_view wanted, std::string_view image,
                          const std::vector<std::string>& names) {
  return ErrorStatus(CUDA_ERROR_NOT_FOUND, "get kernel " + Quoted(wanted), "of " + Quoted(image),
                     cudaimage::ExplainMissingKernel(wanted, names));
}

absl::Status CheckName(std::string_view doing, std::string_view name) {
  if (!name.empty() && name.find('\0') == std::string_view::npos) return absl::OkStatus();
  const char* const why = name.empty() ? "the name is empty" : "the name has a NUL in it";
  return ErrorStatus(CUDA_ERROR_INVALID_VALUE, doing, Quoted(name), why);
}

std::string PlaceText(const ObjectDriver& driver, const ContextRef& context) {
  std::string text = ContextText(context.get());
  CUdevice device = 0;
  int capability = 0;
  if (AskComputeCapability(driver, &device, &capability) == CUDA_SUCCESS) {
    absl::StrAppend(&text, " on device ", device, " (compute capability ", capability / 10, ".",
                    capability % 10, ")");
  }
  return text;
}

std::string DevicesText(const ObjectDriver& driver) {
  std::string text;
  int count = 0;
  if (driver.DeviceGetCount(&count) != CUDA_SUCCESS) return text;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    int major = 0;
    int minor = 0;
    CUresult code = driver.DeviceGet(&device, i);
    if (code == CUDA_SUCCESS) {
      code = AskEach(driver.DeviceGetAttribute, device,
                     {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor}});
    }
    if (code != CUDA_SUCCESS) return text;
    absl::StrAppend(&text, i == 0 ? "for device " : ", ", i, " (compute capability ", major, ".",
                    minor, ")");
  }
  return text;
}

std::string LoadText(const CodeImage& image) {
  return absl::StrCat("load ", Name(image.kind()), " ", Quoted(image.name()));
}

std::string FindVariableText(std::string_view variable, std::string_view image) {
  return "find variable " + Quoted(variable) + " of " + Quoted(image);
}

absl::StatusOr<std::vector<std::string>> ReadableNames(const CodeImage& image) {
  if (image.names_all_kernels()) return image.kernel_names();
  return ErrorStatus(CUDA_ERROR_NOT_SUPPORTED, "list the kernels of " + Quoted(image.name()), "",
                     "those of LTO IR, and of what is compressed where liblz4.so.1 or "
                     "libzstd.so.1 is missing, cannot be read off an image; a driver of CUDA 12.4 "
                     "or newer lists them");
}

std::string Quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

// Not `*new std::string`, which would allocate with the static's guard held.
const std::string& NoName() noexcept {
  alignas(std::string) static unsigned char s_place[sizeof(std::string)];
  static const std::string& s_none = *new (s_place) std::string;
  return s_none;
}

CUGUEST_END_INTERNAL_NAMESPACE
