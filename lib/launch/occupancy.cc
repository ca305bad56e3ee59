// SPDX-License-Identifier: Apache-2.0

#include "cuguest/occupancy.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "lib/core/status_macros.h"
#include "lib/launch/launch_check.h"
#include "lib/launch/launch_config.h"
#include "lib/module/code.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::FoundFunction;
using internal::FunctionInContext;
using internal::KernelState;

std::string AskText(const KernelState& kernel) {
  return kernel.name.empty() ? "ask for the occupancy of a borrowed kernel"
                             : absl::StrCat("ask for the occupancy of \"", kernel.name, "\"");
}

absl::Status CheckBlock(const KernelState& kernel, const FunctionInContext& function,
                        unsigned block) {
  if (block > 0 && block <= static_cast<unsigned>(function.max_threads_per_block)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(AskText(kernel), ": a block of ", block,
                                                 " threads; the kernel allows from 1 to ",
                                                 function.max_threads_per_block));
}

// ask(driver, kernel, function), which returns StatusOr<T>, with the context current.
template <typename T, typename Ask>
absl::StatusOr<T> AskIn(const Kernel& kernel, const ContextRef& context, const Ask& ask) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  const KernelState* const state = internal::KernelAccess::Of(kernel);
  if (state == nullptr) {
    return internal::NoKernel("ask for the occupancy of");
  }
  const ContextGuard guard(context);
  if (!guard.ok()) return ToStatus(guard);
  CUGUEST_ASSIGN_OR_RETURN(const FoundFunction found, internal::FindFunction(*state, context));
  return ask(*driver, *state, *found.function);
}

}  // namespace

absl::StatusOr<int> MaxActiveBlocks(const Kernel& kernel, const ContextRef& context, unsigned block,
                                    std::size_t shared_bytes) {
  return AskIn<int>(kernel, context,
                    [&](const Driver& driver, const KernelState& state,
                        const FunctionInContext& function) -> absl::StatusOr<int> {
                      CUGUEST_RETURN_IF_ERROR(CheckBlock(state, function, block));
                      int blocks = 0;
                      const CUresult code = driver.OccupancyMaxActiveBlocksPerMultiprocessor(
                          &blocks, function.function, static_cast<int>(block), shared_bytes);
                      if (code == CUDA_SUCCESS) return blocks;
                      return ToStatus(code, AskText(state),
                                      absl::StrCat("blocks of ", block, " threads"));
                    });
}

absl::StatusOr<SuggestedShape> SuggestShape(const Kernel& kernel, const ContextRef& context,
                                            std::size_t shared_bytes, unsigned max_block) {
  return AskIn<SuggestedShape>(
      kernel, context,
      [&](const Driver& driver, const KernelState& state,
          const FunctionInContext& function) -> absl::StatusOr<SuggestedShape> {
        const auto most = static_cast<unsigned>(function.max_threads_per_block);
        int grid = 0;
        int block = 0;
        const CUresult code = driver.OccupancyMaxPotentialBlockSize(
            &grid, &block, function.function, nullptr, shared_bytes,
            static_cast<int>(max_block < most ? max_block : most));
        const std::string object = absl::StrCat(shared_bytes, " bytes of dynamic shared memory");
        if (code != CUDA_SUCCESS) return ToStatus(code, AskText(state), object);
        if (block > 0 && grid > 0) {
          SuggestedShape shape;
          shape.block = static_cast<unsigned>(block);
          shape.min_grid = static_cast<unsigned>(grid);
          return shape;
        }
        return absl::ResourceExhaustedError(absl::StrCat(
            AskText(state), ": not one block fits on a multiprocessor, with ", object));
      });
}

absl::StatusOr<int> MaxActiveClusters(const Kernel& kernel, const ContextRef& context,
                                      const LaunchShape& shape) {
  return AskIn<int>(kernel, context,
                    [&](const Driver& driver, const KernelState& state,
                        FunctionInContext& function) -> absl::StatusOr<int> {
                      if (!shape.cluster.has_value()) {
                        return absl::InvalidArgumentError(
                            absl::StrCat(AskText(state), ": the shape has no cluster"));
                      }
                      absl::Status status = internal::CheckAttributes(state, shape);
                      if (status.ok() && !internal::FitsLimits(shape, function)) {
                        status = internal::RefuseShape(driver, state, shape, &function);
                      }
                      if (!status.ok()) return status;
                      const internal::LaunchConfig config(shape, nullptr);
                      return internal::CountClusters(driver, state, shape, function, *config.get());
                    });
}

absl::StatusOr<std::size_t> AvailableDynamicShared(const Kernel& kernel, const ContextRef& context,
                                                   int blocks, unsigned block) {
  return AskIn<std::size_t>(
      kernel, context,
      [&](const Driver& driver, const KernelState& state,
          const FunctionInContext& function) -> absl::StatusOr<std::size_t> {
        const auto ask = driver.Require(&Driver::OccupancyAvailableDynamicSMemPerBlock);
        if (!ask.ok()) return ask.status();
        CUGUEST_RETURN_IF_ERROR(CheckBlock(state, function, block));
        std::size_t bytes = 0;
        const CUresult code = (*ask)(&bytes, function.function, blocks, static_cast<int>(block));
        if (code == CUDA_SUCCESS) return bytes;
        return ToStatus(code, AskText(state),
                        absl::StrCat(blocks, " blocks of ", block, " threads"));
      });
}

CUGUEST_END_NAMESPACE
