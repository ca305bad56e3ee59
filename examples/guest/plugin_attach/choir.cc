// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The effect "choir": adds a song, which stays on the device from init to shutdown.

#include "cuguest/copy.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "examples/guest/plugin_attach/member.h"
#include "kernels/vector_add.h"

namespace plugin {
namespace {

using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::Stream;

class Choir {
 public:
  [[nodiscard]] static absl::StatusOr<Choir> Prepare(const ContextRef& home) {
    CUGUEST_ASSIGN_OR_RETURN(
        const Module module,
        Module::Load({cuguest_kernels::vector_add_ptx, cuguest_kernels::vector_add_ptx_size},
                     "vector_add"));
    absl::StatusOr<Kernel> add = module.GetKernel("vector_add");
    CUGUEST_RETURN_IF_ERROR(add);
    absl::StatusOr<Stream> stream = Stream::Create(home);
    CUGUEST_RETURN_IF_ERROR(stream);
    Signal song;
    for (int i = 0; i < kLength; ++i) song.push_back(static_cast<float>(3 * i));
    absl::StatusOr<DeviceBuffer<float>> on_device = DeviceBuffer<float>::CopyOf(home, song);
    CUGUEST_RETURN_IF_ERROR(on_device);
    return Choir(*std::move(add), *std::move(stream), *std::move(on_device));
  }

  [[nodiscard]] absl::StatusOr<Signal> Apply(const Signal& in) {
    if (in.size() > kLength)
      return absl::OutOfRangeError("the signal is longer than the choir's song");
    CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> voices,
                             DeviceBuffer<float>::CopyOf(stream_.context(), in));
    absl::Status status = cuguest::LaunchForElements(
        add_, in.size(), stream_.ref(), static_cast<unsigned>(in.size()), DevicePtr(voices.view()),
        DevicePtr(song_.view()), DevicePtr(voices.view()));
    if (status.ok()) status = stream_.ref().Synchronize();
    if (!status.ok()) return status;
    return cuguest::Download(voices.view());
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
