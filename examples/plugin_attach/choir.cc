// SPDX-License-Identifier: Apache-2.0
//
// The effect "choir": sings along. What it sings stays on the device from init to
// shutdown.

#include "examples/plugin_attach/member.h"
#include "examples/support/gpu.h"
#include "kernels/vector_add.h"

namespace plugin {
namespace {

using support::Buffer;
using support::Kernel;

class Choir {
 public:
  [[nodiscard]] static absl::StatusOr<Choir> Prepare(const Driver& driver) {
    absl::StatusOr<Kernel> add =
        Kernel::Load(driver, cuguest_kernels::vector_add_ptx, "vector_add");
    if (!add.ok()) return add.status();
    Signal song;
    for (int i = 0; i < kLength; ++i) song.push_back(static_cast<float>(3 * i));
    absl::StatusOr<Buffer> on_device = Buffer::CopyOf(driver, song);
    if (!on_device.ok()) return on_device.status();
    return Choir(driver, *std::move(add), *std::move(on_device));
  }

  [[nodiscard]] absl::StatusOr<Signal> Apply(const Signal& in) {
    if (in.size() > kLength) return absl::OutOfRangeError("the choir knows a short song only");
    absl::StatusOr<Buffer> soloist = Buffer::CopyOf(*driver_, in);
    if (!soloist.ok()) return soloist.status();
    absl::StatusOr<Buffer> together = Buffer::Make(*driver_, in.size());
    if (!together.ok()) return together.status();

    auto count = static_cast<unsigned>(in.size());
    void* parameters[] = {&count, soloist->parameter(), song_.parameter(), together->parameter()};
    if (absl::Status status = add_.Run(count, parameters); !status.ok()) return status;
    Signal out;
    if (absl::Status status = together->CopyTo(&out); !status.ok()) return status;
    return out;
  }

  void Leak() {
    add_.Leak();
    song_.Leak();
  }

 private:
  static constexpr int kLength = 1000;

  Choir(const Driver& driver, Kernel add, Buffer song)
      : driver_(&driver), add_(std::move(add)), song_(std::move(song)) {}

  const Driver* driver_;
  Kernel add_;
  Buffer song_;
};

}  // namespace
}  // namespace plugin

EXPORT_EFFECT(plugin::Choir, "choir")
