// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The effect "echo": adds the signal of 100 samples before, half as loud.

#include "cuguest/copy.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/device_view.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "examples/guest/plugin_attach/member.h"
#include "kernels/saxpy.h"

namespace plugin {
namespace {

using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::DeviceView;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::Stream;

class Echo {
 public:
  [[nodiscard]] static absl::StatusOr<Echo> Prepare(const ContextRef& home) {
    CUGUEST_ASSIGN_OR_RETURN(
        const Module module,
        Module::Load({cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size}, "saxpy"));
    absl::StatusOr<Kernel> saxpy = module.GetKernel("saxpy");
    CUGUEST_RETURN_IF_ERROR(saxpy);
    absl::StatusOr<Stream> stream = Stream::Create(home);
    CUGUEST_RETURN_IF_ERROR(stream);
    return Echo(*std::move(saxpy), *std::move(stream));
  }

  [[nodiscard]] absl::StatusOr<Signal> Apply(const Signal& in) const {
    if (in.size() <= kDelay) return in;
    CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> dry,
                             DeviceBuffer<float>::CopyOf(stream_.context(), in));
    CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> wet,
                             DeviceBuffer<float>::CopyOf(stream_.context(), in));
    const std::size_t count = in.size() - kDelay;
    CUGUEST_ASSIGN_OR_RETURN(const DeviceView<float> delayed, wet.view().Subview(kDelay, count));
    absl::Status status =
        cuguest::LaunchForElements(saxpy_, count, stream_.ref(), static_cast<unsigned>(count), 0.5F,
                                   DevicePtr(dry.view()), DevicePtr(delayed));
    if (status.ok()) status = stream_.ref().Synchronize();
    if (!status.ok()) return status;
    return cuguest::Download(wet.view());
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
