// SPDX-License-Identifier: Apache-2.0
//
// The effect "echo": the signal, and half as loud the signal of 100 samples ago.

#include "examples/plugin_attach/member.h"
#include "examples/support/gpu.h"
#include "kernels/saxpy.h"

namespace plugin {
namespace {

using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::DeviceView;
using cuguest::Kernel;
using cuguest::Stream;

class Echo {
 public:
  [[nodiscard]] static absl::StatusOr<Echo> Prepare(const Driver& driver) {
    absl::StatusOr<Kernel> saxpy = Kernel::Load(driver, cuguest_kernels::saxpy_fatbin, "saxpy");
    if (!saxpy.ok()) return saxpy.status();
    return Echo(driver, *std::move(saxpy));
  }

  [[nodiscard]] absl::StatusOr<Signal> Apply(const Signal& in) const {
    if (in.size() <= kDelay) return in;
    const absl::StatusOr<Buffer> dry = Buffer::CopyOf(*driver_, in);
    if (!dry.ok()) return dry.status();
    const absl::StatusOr<Buffer> wet = Buffer::CopyOf(*driver_, in);
    if (!wet.ok()) return wet.status();

    auto count = static_cast<unsigned>(in.size() - kDelay);
    float loudness = 0.5F;
    CUdeviceptr from = dry->at(0);
    CUdeviceptr to = wet->at(kDelay);
    void* parameters[] = {&count, &loudness, &from, &to};
    if (absl::Status status = saxpy_.Run(count, parameters); !status.ok()) return status;
    Signal out;
    if (absl::Status status = wet->CopyTo(&out); !status.ok()) return status;
    return out;
  }

  void Leak() { saxpy_.Leak(); }

 private:
  static constexpr std::size_t kDelay = 100;

  Echo(const Driver& driver, Kernel saxpy) : driver_(&driver), saxpy_(std::move(saxpy)) {}

  const Driver* driver_;
  Kernel saxpy_;
};

}  // namespace
}  // namespace plugin

EXPORT_EFFECT(plugin::Echo, "echo")
