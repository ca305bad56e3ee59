// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cudaimage/nvjitlink.h"

#include <dlfcn.h>

CUDAIMAGE_BEGIN_NAMESPACE
namespace {

template <typename Function>
bool FindEntry(void* library, const char* symbol, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, symbol));
  return *function != nullptr;
}

// The first entry that `library` lacks; nullptr if the table is complete.
const char* FillTable(void* library, NvJitLinkTable* table) {
#define CUDAIMAGE_FIND_ENTRY(Name, parameters) \
  if (!FindEntry(library, "nvJitLink" #Name, &table->Name)) return "nvJitLink" #Name;
  CUDAIMAGE_NVJITLINK_ENTRIES(CUDAIMAGE_FIND_ENTRY)
#undef CUDAIMAGE_FIND_ENTRY
  return nullptr;
}

}  // namespace

Status NvJitLinkTable::Load(const char* soname, NvJitLinkTable* table) {
  void* const library = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* const reason = dlerror();
    return Status(Status::Code::kUnavailable, reason != nullptr ? reason : soname);
  }
  const char* const missing = FillTable(library, table);
  if (missing != nullptr) {
    return Status(Status::Code::kTooOld, Text(soname, " has no ", missing));
  }
  static_cast<void>(FindEntry(library, "nvJitLinkVersion", &table->Version));
  return Status();
}

const char* NvJitLinkTable::ErrorName(int result) noexcept {
  static constexpr const char* kNames[] = {
      "NVJITLINK_SUCCESS",
      "NVJITLINK_ERROR_UNRECOGNIZED_OPTION",
      "NVJITLINK_ERROR_MISSING_ARCH",
      "NVJITLINK_ERROR_INVALID_INPUT",
      "NVJITLINK_ERROR_PTX_COMPILE",
      "NVJITLINK_ERROR_NVVM_COMPILE",
      "NVJITLINK_ERROR_INTERNAL",
      "NVJITLINK_ERROR_THREADPOOL",
      "NVJITLINK_ERROR_UNRECOGNIZED_INPUT",
      "NVJITLINK_ERROR_FINALIZE",
      "NVJITLINK_ERROR_NULL_INPUT",
      "NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS",
      "NVJITLINK_ERROR_INCORRECT_INPUT_TYPE",
      "NVJITLINK_ERROR_ARCH_MISMATCH",
      "NVJITLINK_ERROR_OUTDATED_LIBRARY",
      "NVJITLINK_ERROR_MISSING_FATBIN",
      "NVJITLINK_ERROR_UNRECOGNIZED_ARCH",
      "NVJITLINK_ERROR_UNSUPPORTED_ARCH",
      "NVJITLINK_ERROR_LTO_NOT_ENABLED",
  };
  constexpr int kCount = sizeof(kNames) / sizeof(kNames[0]);
  return result >= 0 && result < kCount ? kNames[result] : "an nvJitLink error of no known name";
}

std::string NvJitLinkTable::Log(NvJitLinkState* state, GetSize get_size, GetText get_text) {
  size_t size = 0;  // with a NUL, or 0 where nothing was said
  if (state == nullptr || get_size(state, &size) != 0 || size == 0) return "";
  std::string log(size + 1, '\0');
  if (get_text(state, log.data()) != 0) return "";
  log.resize(log.find_last_not_of('\0') + 1);
  return log;
}

CUDAIMAGE_END_NAMESPACE
