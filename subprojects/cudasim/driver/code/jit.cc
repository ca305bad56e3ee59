// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/code/jit.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "driver/api.h"
#include "driver/code/image/cubin.h"
#include "driver/panic.h"
#include "driver/release.h"

namespace cudasim::driver {
namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kRegistersPerBlock = 65536;
constexpr unsigned kMaxRegisters = 255;
constexpr int kOldestCompiled = 75;
constexpr unsigned kFirstTarget = 10;  // what is below was a target once

unsigned ToUnsigned(void* value) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(value));
}

bool IsKnownTarget(unsigned target) {
  constexpr unsigned kTargets[] = {30, 32, 35, 37, 50, 52, 53,  60,  61,  62,  70, 72,
                                   75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
  const unsigned plain = target & 0xffff;
  const bool known =
      std::find(std::begin(kTargets), std::end(kTargets), plain) != std::end(kTargets);
  return known && (target == plain || plain >= kArchitecture);
}

// What cuLinkAddData and cuLinkAddFile take.
bool IsForCompiler(CUjit_option option) {
  return option <= CU_JIT_THREADS_PER_BLOCK || option == CU_JIT_OPTIMIZATION_LEVEL ||
         (option >= CU_JIT_GENERATE_DEBUG_INFO && option <= CU_JIT_FAST_COMPILE) ||
         option >= CU_JIT_POSITION_INDEPENDENT_CODE;
}

bool IsTaken(JitRequest::Call call, CUjit_option option) {
  if (call == JitRequest::Call::kLinkAdd) return IsForCompiler(option);
  return call == JitRequest::Call::kLoad || option != CU_JIT_FALLBACK_STRATEGY;
}

template <typename Number>
std::string Numbered(const char* option, Number number) {
  return option + std::to_string(number);
}

}  // namespace

CUresult JitRequest::Read(Call call, unsigned count, const CUjit_option* options, void** values,
                          JitRequest* request) {
  if (count > 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    // The number may be none of the enumeration.
    int number = 0;
    std::memcpy(&number, options + i, sizeof(number));
    if (number < 0 || number >= ThisRelease().jit_options || !IsTaken(call, options[i])) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const CUresult code = request->ReadOption(call, options[i], values + i);
    if (code != CUDA_SUCCESS) return code;
  }
  const bool contradicts = request->has_target_ && request->threads_value_ != nullptr;
  const bool valid = request->info_.IsValid() && request->error_.IsValid() && !contradicts;
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult JitRequest::ReadOption(Call call, CUjit_option option, void** value) {
  const unsigned number = ToUnsigned(*value);
  switch (option) {
    case CU_JIT_MAX_REGISTERS:
      if (number == 0) return CUDA_ERROR_INVALID_VALUE;
      if (registers_ == 0) registers_ = number;
      break;
    case CU_JIT_THREADS_PER_BLOCK:
      if (number == 0) Panic("CU_JIT_THREADS_PER_BLOCK is 0; a real driver divides by it");
      threads_ = number;
      threads_value_ = value;
      break;
    case CU_JIT_WALL_TIME:
      time_ = value;
      break;
    case CU_JIT_INFO_LOG_BUFFER:
      info_.buffer = static_cast<char*>(*value);
      info_.has_buffer = true;
      break;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
      info_.size = number;
      info_.size_value = value;
      break;
    case CU_JIT_ERROR_LOG_BUFFER:
      error_.buffer = static_cast<char*>(*value);
      error_.has_buffer = true;
      break;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
      error_.size = number;
      error_.size_value = value;
      break;
    case CU_JIT_OPTIMIZATION_LEVEL:
      others_.push_back(number == 0 ? "-O0" : "-O3");
      break;
    case CU_JIT_TARGET:
      return ReadTarget(number);
    case CU_JIT_GENERATE_DEBUG_INFO:
      if (number != 0) others_.push_back("-g");
      break;
    case CU_JIT_LOG_VERBOSE:
      verbose_ = number != 0;
      break;
    case CU_JIT_GENERATE_LINE_INFO:
      if (number != 0) others_.push_back("-lineinfo");
      break;
    case CU_JIT_CACHE_MODE:
      if (number > CU_JIT_CACHE_OPTION_CA) return CUDA_ERROR_INVALID_VALUE;
      if (number == CU_JIT_CACHE_OPTION_CG) others_.push_back("-Xptxas=-dlcm=cg");
      if (number == CU_JIT_CACHE_OPTION_CA) others_.push_back("-Xptxas=-dlcm=ca");
      break;
    case CU_JIT_NEW_SM3X_OPT:
      others_.push_back("-Xptxas=--new-sm3x-opt");
      break;
    case CU_JIT_GLOBAL_SYMBOL_NAMES:
    case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
    case CU_JIT_GLOBAL_SYMBOL_COUNT:
      return CUDA_ERROR_INVALID_VALUE;
    case CU_JIT_REFERENCED_KERNEL_COUNT:
    case CU_JIT_REFERENCED_VARIABLE_COUNT:
      // Not modelled: names that a link is to keep.
      if (call == Call::kLinkCreate) return NotModelled();
      break;
    case CU_JIT_MIN_CTA_PER_SM:
      if (number != 0) others_.push_back(Numbered("-Xptxas=-minnctapersm=", number));
      break;
    case CU_JIT_MAX_THREADS_PER_BLOCK:
      if (number != 0) others_.push_back(Numbered("-Xptxas=-maxntid=", number));
      break;
    case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
      if (number != 0) others_.push_back("-Xptxas=-override-directive-values");
      break;
    default:
      break;  // for link-time optimisation, without effect on code that can be seen, or obsolete
  }
  return CUDA_SUCCESS;
}

CUresult JitRequest::ReadTarget(unsigned target) {
  if (target >= kFirstTarget && !IsKnownTarget(target)) return CUDA_ERROR_INVALID_VALUE;
  target_ = target;
  has_target_ = true;
  return CUDA_SUCCESS;
}

CUresult JitRequest::TargetCode() const {
  return has_target_ && target_ < kFirstTarget ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}

// As many registers as let a block of that size run; a limit that is given goes before.
void JitRequest::AddThreads(std::vector<std::string>* options) const {
  unsigned registers = registers_;
  if (registers == 0 && threads_ != 0) {
    registers = std::min(kMaxRegisters, kRegistersPerBlock / std::min(threads_, kMaxThreads));
  }
  if (registers != 0) options->push_back(Numbered("-maxrregcount=", registers));
}

// A driver compiles for all that the device can (sm_90a). Nothing runs what it compiles for
// another device; the toolkit's compiler does not know the oldest ones any more.
std::string JitRequest::ArchitectureOption() const {
  if (Architecture() == kArchitecture) return Numbered("-arch=sm_", kArchitecture) + "a";
  return Numbered("-arch=sm_", std::max(Architecture(), kOldestCompiled));
}

int JitRequest::Architecture() const {
  return has_target_ && target_ >= kFirstTarget ? static_cast<int>(target_ & 0xffff)
                                                : kArchitecture;
}

std::vector<std::string> JitRequest::CompilerOptions() const {
  std::vector<std::string> options = others_;
  options.push_back(ArchitectureOption());
  AddThreads(&options);
  if (verbose_) options.push_back("-verbose");
  return options;
}

void JitRequest::Answer(const JitOutcome& outcome) const {
  info_.Write(outcome.info_log);
  error_.Write(outcome.error_log);
  if (time_ != nullptr) std::memcpy(time_, &outcome.milliseconds, sizeof(float));
  if (threads_value_ == nullptr) return;
  const unsigned rounded = std::min((threads_ - 1) / kWarp * kWarp + kWarp, kMaxThreads);
  *threads_value_ = reinterpret_cast<void*>(std::uintptr_t{rounded});
}

// Both or neither.
bool JitRequest::Log::IsValid() const {
  if (has_buffer != (size_value != nullptr)) return false;
  return buffer != nullptr || size == 0;
}

// A driver ends the text even in a buffer of no bytes.
void JitRequest::Log::Write(const std::string& text) const {
  if (size_value == nullptr) return;
  const bool fits = size > 1 && !text.empty();
  if (fits) std::strncpy(buffer, text.c_str(), size);
  if (buffer != nullptr) buffer[fits ? size - 1 : 0] = '\0';
  const size_t told = fits ? std::min(text.size(), size) : 0;
  *size_value = reinterpret_cast<void*>(std::uintptr_t{told});
}

}  // namespace cudasim::driver
