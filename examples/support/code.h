// SPDX-License-Identifier: Apache-2.0
//
// What every example with a kernel does the same way: numbers to a device and back, a kernel
// from an embedded image, one launch over all elements.

#ifndef CUGUEST_EXAMPLES_SUPPORT_CODE_H_
#define CUGUEST_EXAMPLES_SUPPORT_CODE_H_

#include <cstddef>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/code_image.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_view.h"
#include "cuguest/host_span.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/stream.h"

namespace support {

// `values` in new memory of `context`.
template <typename T>
[[nodiscard]] absl::StatusOr<cuguest::DeviceBuffer<T>> Upload(const cuguest::ContextRef& context,
                                                              const std::vector<T>& values) {
  absl::StatusOr<cuguest::DeviceBuffer<T>> buffer =
      cuguest::DeviceBuffer<T>::Allocate(context, values.size());
  if (!buffer.ok()) return buffer;
  if (absl::Status status = cuguest::Copy(buffer->view(), values); !status.ok()) return status;
  return buffer;
}

// What is there, once the streams that write to it were waited for.
template <typename T>
[[nodiscard]] absl::StatusOr<std::vector<std::remove_const_t<T>>> Download(
    const cuguest::DeviceView<T>& view) {
  std::vector<std::remove_const_t<T>> values(view.size());
  const cuguest::HostSpan<std::remove_const_t<T>> to(values);
  if (absl::Status status = cuguest::Copy(to, view); !status.ok()) return status;
  return values;
}

// The kernel `name` of an embedded image, which stays loaded for as long as the kernel.
[[nodiscard]] inline absl::StatusOr<cuguest::Kernel> LoadKernel(
    cuguest::HostSpan<const unsigned char> image, const char* name) {
  const absl::StatusOr<cuguest::CodeImage> code = cuguest::CodeImage::Borrow(image, name);
  if (!code.ok()) return code.status();
  const absl::StatusOr<cuguest::Module> module = cuguest::Module::Load(*code);
  if (!module.ok()) return module.status();
  return module->GetKernel(name);
}

// Launches `kernel` with one thread for each of `count` elements; does not wait.
template <typename... Values>
absl::Status Launch(const cuguest::Kernel& kernel, std::size_t count,
                    const cuguest::StreamRef& stream, const Values&... values) {
  const absl::StatusOr<cuguest::LaunchShape> shape =
      cuguest::LaunchShape::ForElements(count, /*block=*/128);
  if (!shape.ok()) return shape.status();
  return cuguest::Launch(kernel, *shape, stream, values...);
}

// The same, and waits for the stream.
template <typename... Values>
absl::Status Run(const cuguest::Kernel& kernel, std::size_t count, const cuguest::StreamRef& stream,
                 const Values&... values) {
  const absl::Status status = Launch(kernel, count, stream, values...);
  return status.ok() ? stream.Synchronize() : status;
}

}  // namespace support

#endif  // CUGUEST_EXAMPLES_SUPPORT_CODE_H_
