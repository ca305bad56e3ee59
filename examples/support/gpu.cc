// SPDX-License-Identifier: Apache-2.0

#include "examples/support/gpu.h"

#include <string>

#include "cuguest/error.h"

namespace support {

using cuguest::Driver;
using cuguest::ToStatus;

absl::StatusOr<Buffer> Buffer::Make(const Driver& driver, std::size_t count) {
  CUdeviceptr pointer = 0;
  const CUresult code = driver.MemAlloc(&pointer, count * sizeof(float));
  if (code != CUDA_SUCCESS) {
    return ToStatus(code, "allocate device memory", std::to_string(count) + " floats");
  }
  return Buffer(&driver, count, pointer);
}

absl::StatusOr<Buffer> Buffer::CopyOf(const Driver& driver, const std::vector<float>& values) {
  absl::StatusOr<Buffer> buffer = Make(driver, values.size());
  if (!buffer.ok()) return buffer;
  if (absl::Status status = buffer->CopyFrom(values); !status.ok()) return status;
  return buffer;
}

Buffer::~Buffer() {
  if (pointer_ != 0) driver_->MemFree(pointer_);
}

absl::Status Buffer::CopyFrom(const std::vector<float>& values) const {
  if (values.size() != count_) return absl::InvalidArgumentError("copy to the device: the size");
  return ToStatus(driver_->MemcpyHtoD(pointer_, values.data(), count_ * sizeof(float)),
                  "copy to the device");
}

absl::Status Buffer::CopyTo(std::vector<float>* values) const {
  values->resize(count_);
  return ToStatus(driver_->MemcpyDtoH(values->data(), pointer_, count_ * sizeof(float)),
                  "copy from the device");
}

absl::StatusOr<Kernel> Kernel::Load(const Driver& driver, const void* image, const char* name) {
  Kernel kernel(&driver);
  CUresult code = driver.ModuleLoadData(&kernel.module_, image);
  if (code != CUDA_SUCCESS) return ToStatus(code, "load the module of a kernel", name);
  code = driver.ModuleGetFunction(&kernel.function_, kernel.module_, name);
  if (code != CUDA_SUCCESS) return ToStatus(code, "find a kernel in its module", name);
  // A stream that waits for the default one: the copies above are made there.
  code = driver.StreamCreate(&kernel.stream_, CU_STREAM_DEFAULT);
  if (code != CUDA_SUCCESS) return ToStatus(code, "create a stream");
  return kernel;
}

Kernel& Kernel::operator=(Kernel&& other) noexcept {
  if (this == &other) return *this;
  Unload();
  driver_ = other.driver_;
  function_ = other.function_;
  module_ = std::exchange(other.module_, nullptr);
  stream_ = std::exchange(other.stream_, nullptr);
  return *this;
}

absl::Status Kernel::Submit(std::size_t count, void** parameters, CUstream stream) const {
  constexpr unsigned kBlock = 128;
  const auto blocks = static_cast<unsigned>((count + kBlock - 1) / kBlock);
  const CUresult code =
      driver_->LaunchKernel(function_, blocks, 1, 1, kBlock, 1, 1, 0, stream, parameters, nullptr);
  return ToStatus(code, "launch a kernel");
}

absl::Status Kernel::Run(std::size_t count, void** parameters, CUstream stream) const {
  if (absl::Status status = Submit(count, parameters, stream); !status.ok()) return status;
  return ToStatus(driver_->StreamSynchronize(stream), "wait for a kernel");
}

void Kernel::Unload() {
  if (stream_ != nullptr) driver_->StreamDestroy(std::exchange(stream_, nullptr));
  if (module_ != nullptr) driver_->ModuleUnload(std::exchange(module_, nullptr));
}

}  // namespace support
