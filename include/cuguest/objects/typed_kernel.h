// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `TypedKernel<void(...)>` is a Kernel with a signature: the compiler converts the arguments of a
/// launch, as for a function.
///
///   using Saxpy = TypedKernel<void(unsigned, float, DeviceView<const float>, DeviceView<float>)>;
///   const Saxpy saxpy = Saxpy::Of(*module.GetKernel("saxpy"));
///   absl::Status status =
///       saxpy.LaunchForElements(n, stream, n, 2, x.view(), y.view());  // 2 becomes 2.0F

#ifndef CUGUEST_OBJECTS_TYPED_KERNEL_H_
#define CUGUEST_OBJECTS_TYPED_KERNEL_H_

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/export.h"
#include "cuguest/objects/kernel.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/param_buffer.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_NAMESPACE

template <typename Signature>
class TypedKernel;

/// Launch() and LaunchForElements() are those of launch.h, at the same cost.
/// Threads: value.
template <typename... Ts>
class TypedKernel<void(Ts...)> {
 public:
  CUGUEST_HIDE TypedKernel(const TypedKernel&) = default;
  CUGUEST_HIDE TypedKernel(TypedKernel&&) noexcept = default;
  CUGUEST_HIDE TypedKernel& operator=(const TypedKernel&) = default;
  CUGUEST_HIDE TypedKernel& operator=(TypedKernel&&) noexcept = default;
  CUGUEST_HIDE ~TypedKernel() = default;

  CUGUEST_HIDE TypedKernel() noexcept = default;  // empty

  /// The first launch compares the kernel's parameters: see Note [What is checked of parameters].
  [[nodiscard]] CUGUEST_HIDE static TypedKernel Of(Kernel kernel) noexcept {
    return TypedKernel(std::move(kernel));
  }

  [[nodiscard]] CUGUEST_HIDE const Kernel& kernel() const noexcept { return kernel_; }

  CUGUEST_HIDE absl::Status Launch(const LaunchShape& shape, const StreamRef& stream,
                                   Ts... values) const {
    return internal::LaunchTyped(kernel_, shape, stream, values...);
  }

  CUGUEST_HIDE absl::Status Launch(const LaunchShape& shape, internal::CallersStream stream,
                                   Ts... values) const {
    return ::cuguest::Launch(kernel_, shape, stream, values...);
  }

  CUGUEST_HIDE absl::Status LaunchForElements(std::size_t count, const StreamRef& stream,
                                              Ts... values) const {
    if (count == 0) return absl::OkStatus();
    const absl::StatusOr<LaunchShape> shape = internal::ShapeForElements(kernel_, count, stream);
    return shape.ok() ? internal::LaunchTyped(kernel_, *shape, stream, values...) : shape.status();
  }
  CUGUEST_HIDE absl::Status LaunchForElements(std::size_t count, internal::CallersStream stream,
                                              Ts... values) const {
    return ::cuguest::LaunchForElements(kernel_, count, stream, values...);
  }

 private:
  static_assert((internal::IsLaunchParam<Ts>() && ...));

  CUGUEST_HIDE explicit TypedKernel(Kernel kernel) noexcept : kernel_(std::move(kernel)) {}

  Kernel kernel_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_TYPED_KERNEL_H_
