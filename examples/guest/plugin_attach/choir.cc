// SPDX-License-Identifier: Apache-2.0
//
// The effect "choir": sings along. What it sings stays on the device from init to
// shutdown.

#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/kernel.h"
#include "cuguest/stream.h"
#include "examples/plugin_attach/member.h"
#include "examples/support/code.h"
#include "kernels/vector_add.h"

namespace plugin {
namespace {

using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Kernel;
using cuguest::Stream;

class Choir {
 public:
  [[nodiscard]] static absl::StatusOr<Choir> Prepare(const ContextRef& home) {
    absl::StatusOr<Kernel> add = support::LoadKernel(
        {cuguest_kernels::vector_add_ptx, cuguest_kernels::vector_add_ptx_size}, "vector_add");
    if (!add.ok()) return add.status();
    absl::StatusOr<Stream> stream = Stream::Create(home);
    if (!stream.ok()) return stream.status();
    Signal song;
    for (int i = 0; i < kLength; ++i) song.push_back(static_cast<float>(3 * i));
    absl::StatusOr<DeviceBuffer<float>> on_device = support::Upload(home, song);
    if (!on_device.ok()) return on_device.status();
    return Choir(*std::move(add), *std::move(stream), *std::move(on_device));
  }

  [[nodiscard]] absl::StatusOr<Signal> Apply(const Signal& in) {
    if (in.size() > kLength) return absl::OutOfRangeError("the choir knows a short song only");
    absl::StatusOr<DeviceBuffer<float>> voices = support::Upload(stream_.context(), in);
    if (!voices.ok()) return voices.status();
    const absl::Status ran =
        support::Run(add_, in.size(), stream_.ref(), static_cast<unsigned>(in.size()),
                     DevicePtr(voices->view()), DevicePtr(song_.view()), DevicePtr(voices->view()));
    if (!ran.ok()) return ran;
    return support::Download(voices->view());
  }

 private:
  static constexpr int kLength = 1000;

  Choir(Kernel add, Stream stream, DeviceBuffer<float> song)
      : add_(std::move(add)), stream_(std::move(stream)), song_(std::move(song)) {}

  Kernel add_;
  Stream stream_;
  DeviceBuffer<float> song_;
};

}  // namespace
}  // namespace plugin

EXPORT_EFFECT(plugin::Choir, "choir")
