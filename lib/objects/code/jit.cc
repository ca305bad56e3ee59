// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/objects/code/jit.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "cuguest/internal/toolkit.h"
#include "cuguest/status.h"
#include "lib/core/driver_release.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

constexpr std::size_t kLogBytes = 8 << 10;
constexpr std::size_t kVerboseLogBytes = 1 << 20;
constexpr std::size_t kMostLogBytes = 64 << 20;
constexpr unsigned kMostOptimization = 4;
// With 16,384 a driver of CUDA 13.0 did not return
// (test/hardware/reports/nvidia-h200-580.159.04.md, "After 0.3.0").
constexpr unsigned kMostSplits = 4096;

// What the driver writes is in front.
enum OptionPlace { kWallTime, kInfoLog, kInfoSize, kErrorLog, kErrorSize, kThreads };

// The API versions of kJitSplitCompile and kJitLoaderThreads.
constexpr int kHasSplitCompile = 13000;
constexpr int kHasLoaderThreads = 13010;

// A number stands in the place of a pointer.
void* Packed(std::size_t number) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
}

template <typename T>
T Unpacked(void* const& value) {
  T number;
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

absl::Status Refused(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("set JIT options: ", why));
}

}  // namespace

absl::Status CheckJitOptions(const JitOptions& options) {
  if (options.max_registers == 0U) return Refused("max_registers is 0");
  if (options.threads_per_block == 0U) return Refused("threads_per_block is 0");
  if (options.threads_per_block && options.target) {
    return Refused("threads_per_block and target cannot both be set");
  }
  if (options.optimization_level > kMostOptimization) {
    return Refused(
        absl::StrCat("optimization_level is ", *options.optimization_level, ", and 4 is the most"));
  }
  if (options.split_compile > kMostSplits) {
    return Refused(absl::StrCat("split_compile is ", *options.split_compile, ", and ", kMostSplits,
                                " is the most: 0 is all processors"));
  }
  return absl::OkStatus();
}

absl::Status CheckDriverKnows(const JitOptions& options, int driver_version) {
  const struct {
    const char* name;
    bool is_set;
    int needs;
  } rows[] = {
      {"position_independent", options.position_independent, 12000},
      {"min_blocks_per_multiprocessor", options.min_blocks_per_multiprocessor.has_value(), 12030},
      {"max_threads_per_block", options.max_threads_per_block.has_value(), 12040},
      {"override_directives", options.override_directives, 12040},
  };
  for (const auto& row : rows) {
    if (!row.is_set || driver_version >= row.needs) continue;
    return absl::UnimplementedError(absl::StrCat(
        "set JIT options: ", row.name, " needs driver ", FloorOf(row.needs).driver, " (",
        VersionText(row.needs), ") or newer, and this one is of ", VersionText(driver_version)));
  }
  return absl::OkStatus();
}

JitCall::JitCall(const JitOptions& options, int driver_version)
    : info_(options.verbose ? kVerboseLogBytes : kLogBytes),
      error_(kLogBytes),
      asks_for_threads_(options.threads_per_block.has_value()) {
  const auto add_set = [this](unsigned name, const auto& value) {
    if (!value.has_value()) return;
    Add(static_cast<CUjit_option>(name), Packed(static_cast<std::size_t>(*value)));
  };
  const auto add_true = [this](unsigned name, bool value) {
    if (value) Add(static_cast<CUjit_option>(name), Packed(1));
  };
  for (const CUjit_option name :
       {CU_JIT_WALL_TIME, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES}) {
    Add(name, nullptr);
  }
  PointToLogs();
  add_set(CU_JIT_THREADS_PER_BLOCK, options.threads_per_block);  // at kThreads
  add_set(CU_JIT_MAX_REGISTERS, options.max_registers);
  add_set(CU_JIT_OPTIMIZATION_LEVEL, options.optimization_level);
  add_set(CU_JIT_TARGET, options.target);
  add_set(CU_JIT_CACHE_MODE, options.cache_mode);
  add_set(kJitMinBlocksPerMultiprocessor, options.min_blocks_per_multiprocessor);
  add_set(kJitMaxThreadsPerBlock, options.max_threads_per_block);
  add_true(CU_JIT_GENERATE_DEBUG_INFO, options.debug_info);
  add_true(CU_JIT_GENERATE_LINE_INFO, options.line_info);
  add_true(CU_JIT_LOG_VERBOSE, options.verbose);
  add_true(CU_JIT_POSITION_INDEPENDENT_CODE, options.position_independent);
  add_true(kJitOverrideDirectives, options.override_directives);
  if (driver_version >= kHasSplitCompile) add_set(kJitSplitCompile, options.split_compile);
  if (driver_version >= kHasLoaderThreads) add_set(kJitLoaderThreads, options.loader_threads);
}

bool JitCall::GrowFullLogs() {
  const JitReport report = Report();
  const bool info_grew = info_.GrowIfFull();
  const bool error_grew = error_.GrowIfFull();
  if (!info_grew && !error_grew) return false;
  earlier_ = report;
  PointToLogs();
  return true;
}

JitReport JitCall::Report() const {
  JitReport report;
  report.info_log = std::string(info_.Text());
  if (report.info_log.empty()) report.info_log = earlier_.info_log;
  report.error_log = std::string(error_.Text());
  report.milliseconds = Unpacked<float>(values_[kWallTime]);
  if (report.milliseconds == 0) report.milliseconds = earlier_.milliseconds;
  if (asks_for_threads_) report.threads_per_block = Unpacked<unsigned>(values_[kThreads]);
  return report;
}

void JitCall::Add(CUjit_option name, void* value) {
  names_.push_back(name);
  values_.push_back(value);
}

void JitCall::PointToLogs() {
  values_[kInfoLog] = info_.text.get();
  values_[kInfoSize] = Packed(info_.size);
  values_[kErrorLog] = error_.text.get();
  values_[kErrorSize] = Packed(error_.size);
}

std::string_view JitCall::Log::Text() const noexcept {
  return {text.get(), strnlen(text.get(), size)};
}

// The driver cuts what it has to say to one byte less, for the NUL.
bool JitCall::Log::GrowIfFull() {
  constexpr std::size_t kGrowth = 8;
  if (Text().size() + 1 < size || size >= kMostLogBytes) return false;
  *this = Log(size * kGrowth);
  return true;
}

CUGUEST_END_INTERNAL_NAMESPACE
