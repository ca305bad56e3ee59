// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/hosts/guest.h"

#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_ptr.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/kernel.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/stream.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "kernels/saxpy.h"
#include "test/hosts/caller.h"

namespace {

using cuguest::ContextRef;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::DeviceView;
using cuguest::Kernel;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using cuguest::Stream;
using cuguest::StreamRef;
using hosts::Place;
using hosts::PlaceOf;
using hosts::Told;

// What the library keeps between calls. Never destroyed: nothing is called after main.
struct State {
  std::mutex mutex;
  Kernel saxpy;
  std::map<int, SharedContext> contexts;  // by device
  std::atomic<long> buffers{0};
};
State& Kept() {
  static State& state = *new State;
  return state;
}

absl::StatusOr<Kernel> LoadSaxpy() {
  const auto image = cuguest::CodeImage::Borrow(
      {cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size}, "saxpy.fatbin");
  if (!image.ok()) return image.status();
  const auto module = cuguest::Module::Load(*image);
  if (!module.ok()) return module.status();
  return module->GetKernel("saxpy");
}

absl::StatusOr<Kernel> Saxpy() {
  const std::lock_guard<std::mutex> lock(Kept().mutex);
  if (!Kept().saxpy) {
    absl::StatusOr<Kernel> loaded = LoadSaxpy();
    if (!loaded.ok()) return loaded.status();
    Kept().saxpy = *std::move(loaded);
  }
  return Kept().saxpy;
}

absl::StatusOr<ContextRef> OwnContext(int device) {
  const std::lock_guard<std::mutex> lock(Kept().mutex);
  const auto found = Kept().contexts.find(device);
  if (found != Kept().contexts.end()) return found->second.context();
  SharedContext made = SharedContext::Create(Device::Borrow(device));
  if (!made.ok()) return cuguest::ToStatus(made);
  return Kept().contexts.emplace(device, std::move(made)).first->second.context();
}

// A buffer that is counted.
class Scratch {
 public:
  explicit Scratch(DeviceBuffer<float> buffer) : buffer_(std::move(buffer)) { ++Kept().buffers; }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (buffer_.Release().ok()) --Kept().buffers;
  }
  [[nodiscard]] DeviceView<float> view() { return buffer_.view(); }

 private:
  DeviceBuffer<float> buffer_;
};

absl::Status ScaleAdd(const StreamRef& stream, float a, const DeviceView<const float>& x,
                      const DeviceView<float>& y) {
  const absl::StatusOr<Kernel> saxpy = Saxpy();
  if (!saxpy.ok()) return saxpy.status();
  const auto shape = cuguest::LaunchShape::ForElements(y.size(), /*block=*/256);
  if (!shape.ok()) return shape.status();
  return cuguest::Launch(*saxpy, *shape, stream, static_cast<unsigned>(y.size()), a,
                         cuguest::DevicePtr(x), cuguest::DevicePtr(y));
}

absl::Status Sum(const StreamRef& stream, const DeviceView<const float>& values, double* sum) {
  std::vector<float> host(values.size());
  absl::Status status = cuguest::DownloadAsync(values, host, stream);
  if (status.ok()) status = stream.Synchronize();
  if (status.ok()) *sum = std::accumulate(host.begin(), host.end(), 0.0);
  return status;
}

absl::Status SumOfCopy(const StreamRef& stream, const DeviceView<const float>& values,
                       double* sum) {
  absl::StatusOr<DeviceBuffer<float>> made =
      DeviceBuffer<float>::AllocateAsync(stream, values.size());
  if (!made.ok()) return made.status();
  Scratch copy(*std::move(made));
  const absl::Status status = cuguest::CopyAsync(copy.view(), values, stream);
  return status.ok() ? Sum(stream, copy.view(), sum) : status;
}

absl::Status WorkIn(const ContextRef& context, size_t count, double* sum) {
  const absl::StatusOr<Stream> stream = Stream::Create(context);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<DeviceBuffer<float>> of_x = DeviceBuffer<float>::Allocate(context, count);
  if (!of_x.ok()) return of_x.status();
  Scratch x(*std::move(of_x));
  absl::StatusOr<DeviceBuffer<float>> of_y = DeviceBuffer<float>::Allocate(context, count);
  if (!of_y.ok()) return of_y.status();
  Scratch y(*std::move(of_y));
  absl::Status status = cuguest::FillAsync(x.view(), 3.0F, stream->ref());
  if (status.ok()) status = cuguest::FillAsync(y.view(), 1.0F, stream->ref());
  if (status.ok()) status = ScaleAdd(stream->ref(), 2.0F, x.view(), y.view());
  return status.ok() ? Sum(stream->ref(), y.view(), sum) : status;
}

}  // namespace

int guest_prepare(CUstream stream, const float* values) {
  const absl::StatusOr<Place> place = PlaceOf(stream, values);
  if (!place.ok()) return Told(place.status());
  const absl::StatusOr<Kernel> saxpy = Saxpy();
  return Told(saxpy.ok() ? saxpy->Preload(place->context.context()) : saxpy.status());
}

int guest_fill(CUstream stream, float* values, size_t count, float value) {
  const absl::StatusOr<DeviceView<float>> view = DeviceView<float>::Borrow(values, count);
  if (!view.ok()) return Told(view.status());
  const absl::StatusOr<Place> place = PlaceOf(stream, values);
  return Told(place.ok() ? cuguest::FillAsync(*view, value, place->stream) : place.status());
}

int guest_scale_add(CUstream stream, float a, const float* x, float* y, size_t count) {
  const absl::StatusOr<DeviceView<const float>> from = DeviceView<const float>::Borrow(x, count);
  if (!from.ok()) return Told(from.status());
  const absl::StatusOr<DeviceView<float>> to = DeviceView<float>::Borrow(y, count);
  if (!to.ok()) return Told(to.status());
  const absl::StatusOr<Place> place = PlaceOf(stream, y);
  return Told(place.ok() ? ScaleAdd(place->stream, a, *from, *to) : place.status());
}

int guest_sum(CUstream stream, const float* values, size_t count, double* sum) {
  const absl::StatusOr<DeviceView<const float>> view =
      DeviceView<const float>::Borrow(values, count);
  if (!view.ok()) return Told(view.status());
  const absl::StatusOr<Place> place = PlaceOf(stream, values);
  return Told(place.ok() ? SumOfCopy(place->stream, *view, sum) : place.status());
}

int guest_work_in_own_context(int device, size_t count, double* sum) {
  const absl::StatusOr<ContextRef> context = OwnContext(device);
  return Told(context.ok() ? WorkIn(*context, count, sum) : context.status());
}

int guest_work_in_primary_context(int device, size_t count, double* sum) {
  PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(device));
  if (!primary.ok()) return Told(cuguest::ToStatus(primary));
  const absl::Status status = WorkIn(primary.context(), count, sum);
  const absl::Status released = ToStatus(primary.Release());
  return Told(status.ok() ? released : status);
}

const char* guest_last_error_text(void) { return hosts::last_error; }

long guest_live(void) {
  const std::lock_guard<std::mutex> lock(Kept().mutex);
  return Kept().buffers + static_cast<long>(Kept().contexts.size());
}

int guest_close(void) {
  const std::lock_guard<std::mutex> lock(Kept().mutex);
  absl::Status status;
  Kept().saxpy = Kernel();
  for (auto& [device, context] : Kept().contexts) {
    const absl::Status detached = ToStatus(context.Release());
    if (status.ok()) status = detached;
  }
  Kept().contexts.clear();
  return Told(status);
}
