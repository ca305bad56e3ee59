// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file
/// `SmSplit::Part` is a part of a device's SMs, which a GreenContext is made of. `SmSplit` splits a
/// device into partitions that have no SM in common, of one size or of several.
///
///   absl::StatusOr<SmSplit> split = SmSplit::Of(device, SmCount{16}, 2);
///   if (!split.ok()) return split.status();
///   absl::StatusOr<GreenContext> decoder = GreenContext::Create(split->parts[0]);
///   absl::StatusOr<GreenContext> encoder = GreenContext::Create(split->parts[1]);
///   absl::StatusOr<GreenContext> others = GreenContext::Create(split->rest);
///   split = SmSplit::OfSizes(device, {SmCount{16}, SmCount{64}});

#ifndef CUGUEST_SM_SPLIT_H_
#define CUGUEST_SM_SPLIT_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "cuguest/device.h"
#include "cuguest/export.h"
#include "cuguest/sm_count.h"

CUGUEST_BEGIN_NAMESPACE

/// A device's SMs, split into parts and a rest.
struct SmSplit {
  /// Only names SMs, and owns nothing. Parts of one SmSplit have no SM in common; those of two may.
  /// Any number of green contexts can be made of one part.
  /// Threads: value.
  class Part {
   public:
    CUGUEST_HIDE Part() noexcept = default;  // of no SMs
    CUGUEST_HIDE Part(const Part&) = default;
    CUGUEST_HIDE Part(Part&&) noexcept = default;
    CUGUEST_HIDE Part& operator=(const Part&) = default;
    CUGUEST_HIDE Part& operator=(Part&&) noexcept = default;
    CUGUEST_HIDE ~Part() = default;

    [[nodiscard]] CUGUEST_HIDE Device device() const noexcept { return device_; }

    /// SmCount{0} if it has none, as the rest of a device that was split evenly.
    [[nodiscard]] CUGUEST_HIDE SmCount count() const noexcept { return count_; }

   private:
    friend class GreenContext;
    friend struct SmSplit;

    // A CUdevResource, whose alignment differs between releases of <cuda.h>.
    struct Resource {
      alignas(8) unsigned char bytes[144];
    };

    Device device_ = Device::Borrow(0);
    SmCount count_{0};
    std::vector<Resource> resources_;
  };

  CUGUEST_HIDE SmSplit() = default;
  CUGUEST_HIDE SmSplit(const SmSplit&) = default;
  CUGUEST_HIDE SmSplit(SmSplit&&) = default;
  CUGUEST_HIDE SmSplit& operator=(const SmSplit&) = default;
  CUGUEST_HIDE SmSplit& operator=(SmSplit&&) = default;
  CUGUEST_HIDE ~SmSplit() = default;

  CUGUEST_HIDE static constexpr unsigned kAsManyAsFit = 0xffffffff;

  /// Splits the SMs of `device` into `count` parts of at least `least` SMs each, and a rest.
  /// `flags` are CU_DEV_SM_RESOURCE_SPLIT_*: with CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING
  /// the parts of an H100 are multiples of 2, whose kernels may not get large clusters.
  /// Stack, count: never touched: no context is created.
  /// Threads: any. Not from a stream callback: kPermissionDenied.
  /// Errors:  those of Driver::GetInitialized(), and
  ///          kNotFound         no such device
  ///          kInvalidArgument  parts of no SMs, no parts, or more than the device has: the text
  ///                            says how many SMs it has and how many parts fit; unknown flags
  ///          kUnimplemented    a driver below CUDA 12.4
  /// Cost:    three driver calls.
  /// Source:  CUDA Driver API, cuDevSmResourceSplitByCount; docs/guarantees.md.
  [[nodiscard]] CUGUEST_API static absl::StatusOr<SmSplit> Of(Device device, SmCount least,
                                                              unsigned count = kAsManyAsFit,
                                                              unsigned flags = 0);

  /// Splits the SMs of `device` into a part for each of `sizes`, with at least so many SMs, and a
  /// rest. A size is rounded up to a multiple of the smallest part of Of(). Where the driver has no
  /// such call, several of those make a part: kernels with clusters that are larger than the
  /// smallest part need one of Of() then.
  /// Stack, count: as Of().
  /// Threads: any; as Of().
  /// Errors:  as Of(); kInvalidArgument also if `sizes` is empty, has SmCount{0}, or asks for more
  ///          than fits.
  /// Cost:    three driver calls.
  /// Source:  CUDA Driver API, cuDevSmResourceSplit, from CUDA 13.1 on (not measured) and
  ///          cuDevResourceGenerateDesc; docs/guarantees.md.
  [[nodiscard]] CUGUEST_API static absl::StatusOr<SmSplit> OfSizes(
      Device device, const std::vector<SmCount>& sizes);

  std::vector<Part> parts;  ///< in the order in which they were asked for
  /// What is left of the device. It "does not have the same functional or performance guarantees as
  /// the groups" (CUDA Driver API, cuDevSmResourceSplitByCount).
  Part rest;

 private:
  // Of one CUdevResource or several of one split.
  static Part MakePart(Device device, const void* resources, std::size_t count);
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_SM_SPLIT_H_
