// SPDX-License-Identifier: Apache-2.0
//
// The effect "echo": the signal, and half as loud the signal of 100 samples ago.

#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/device_view.h"
#include "cuguest/kernel.h"
#include "cuguest/stream.h"
#include "examples/plugin_attach/member.h"
#include "examples/support/code.h"
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
  [[nodiscard]] static absl::StatusOr<Echo> Prepare(const ContextRef& home) {
    absl::StatusOr<Kernel> saxpy = support::LoadKernel(
        {cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size}, "saxpy");
    if (!saxpy.ok()) return saxpy.status();
    absl::StatusOr<Stream> stream = Stream::Create(home);
    if (!stream.ok()) return stream.status();
    return Echo(*std::move(saxpy), *std::move(stream));
  }

  [[nodiscard]] absl::StatusOr<Signal> Apply(const Signal& in) const {
    if (in.size() <= kDelay) return in;
    absl::StatusOr<DeviceBuffer<float>> dry = support::Upload(stream_.context(), in);
    if (!dry.ok()) return dry.status();
    absl::StatusOr<DeviceBuffer<float>> wet = support::Upload(stream_.context(), in);
    if (!wet.ok()) return wet.status();
    const std::size_t count = in.size() - kDelay;
    const absl::StatusOr<DeviceView<float>> delayed = wet->view().Subview(kDelay, count);
    if (!delayed.ok()) return delayed.status();
    const absl::Status ran =
        support::Run(saxpy_, count, stream_.ref(), static_cast<unsigned>(count), 0.5F,
                     DevicePtr(dry->view()), DevicePtr(*delayed));
    if (!ran.ok()) return ran;
    return support::Download(wet->view());
  }

 private:
  static constexpr std::size_t kDelay = 100;

  Echo(Kernel saxpy, Stream stream) : saxpy_(std::move(saxpy)), stream_(std::move(stream)) {}

  Kernel saxpy_;
  Stream stream_;
};

}  // namespace
}  // namespace plugin

EXPORT_EFFECT(plugin::Echo, "echo")
