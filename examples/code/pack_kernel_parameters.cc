// SPDX-License-Identifier: Apache-2.0
//
// Where must a kernel's parameters lie, and who works that out?
//
// A launch may hand over its parameters in one buffer. Each must start at a multiple of the
// alignment that its type has in device code, and nobody tells whether it does: a kernel that
// finds them elsewhere computes garbage. The guide's program has two macros for it, and the
// author remembers the alignments. PackedParams is made by the compiler, from the types;
// ParamBuffer at run time; and the first launch holds either against what the driver knows
// of the kernel.
//
//   1. The parameters of the guide's example
//
//      int                           at 0            4 bytes
//      float4                        at 16           16 bytes
//      char                          at 32           1 bytes
//      ...
//
// A struct is where this goes wrong: it may have another layout on the host than in the
// kernel, although both are declared with the same words. The guide's myStruct is 32 bytes on
// the device, with 12 of them between its fields, and 20 on a host whose float4 is four
// floats. Then the launch is refused:
//
//   2. The guide's myStruct, on a host whose float4 is four floats
//
//      sizeof(MyStruct)              20              on the device 32
//      Launch                        refused
//        launch "layout_struct": parameter 1 is 32 bytes at offset 16 in the kernel,
//        and 20 bytes at offset 4 is given: ...

#include <cuda.h>
#include <vector_types.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/param_buffer.h"
#include "cuguest/shared_context.h"
#include "cuguest/stream.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/layout.h"

namespace {

using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Kernel;
using cuguest::KernelParameter;
using cuguest::LaunchShape;
using cuguest::Module;
using cuguest::PackedParams;
using cuguest::ParamBuffer;
using cuguest::SharedContext;
using cuguest::Stream;
using support::PrintRow;
using support::PrintScene;
using Bytes = std::vector<unsigned char>;

// The guide's ALIGN_UP() and ADD_TO_PARAM_BUFFER(), as a class.
class ByHand {
 public:
  template <typename T>
  void Add(const T& value, std::size_t alignment) {
    size_ = (size_ + alignment - 1) & ~(alignment - 1);
    std::memcpy(buffer_ + size_, &value, sizeof(value));
    size_ += sizeof(value);
  }
  [[nodiscard]] Bytes bytes() const { return Bytes(buffer_, buffer_ + size_); }

 private:
  unsigned char buffer_[1024] = {};
  std::size_t size_ = 0;
};

// The guide's parameters; and where the kernel writes what it was given.
struct Given {
  int i = -5;
  float4 f4 = {1, 2, 3, 4};
  char c = 'c';
  float f = 0.5F;
  CUdeviceptr pointer = 0x123456789abc;
  float2 f2 = {6, 7};
  CUdeviceptr received = 0;
};

Bytes PackByHand(const Given& given) {
  ByHand buffer;
  buffer.Add(given.i, __alignof(given.i));
  buffer.Add(given.f4, 16);
  buffer.Add(given.c, __alignof(given.c));
  buffer.Add(given.f, __alignof(given.f));
  buffer.Add(given.pointer, __alignof(given.pointer));
  buffer.Add(given.f2, 8);
  buffer.Add(given.received, __alignof(given.received));
  return buffer.bytes();
}

auto PackByTypes(const Given& given) {
  return PackedParams(given.i, given.f4, given.c, given.f, given.pointer, given.f2, given.received);
}

absl::StatusOr<ParamBuffer> PackAtRunTime(const Given& given) {
  ParamBuffer buffer;
  for (const absl::Status& status :
       {buffer.Add(given.i), buffer.Add(given.f4), buffer.Add(given.c), buffer.Add(given.f),
        buffer.Add(given.pointer), buffer.Add(given.f2), buffer.Add(given.received)}) {
    if (!status.ok()) return status;
  }
  return buffer;
}

// What a kernel of kernels/layout.cu writes: the bytes of its parameters, side by side.
template <typename... Ts>
Bytes SideBySide(const Ts&... values) {
  Bytes bytes;
  const auto append = [&bytes](const void* value, std::size_t size) {
    const auto* const first = static_cast<const unsigned char*>(value);
    bytes.insert(bytes.end(), first, first + size);
  };
  (append(&values, sizeof(values)), ...);
  return bytes;
}

// A place for the kernels to write to.
struct Desk {
  Kernel mixed;
  Kernel with_struct;
  Stream stream;
  DeviceBuffer<unsigned char> received;

  // What a launch has written there.
  [[nodiscard]] Bytes Read() const {
    CHECK_OK(stream.ref().Synchronize());
    const absl::StatusOr<Bytes> bytes = cuguest::Download(received.view());
    return CHECK_OK(bytes.status()) ? *bytes : Bytes();
  }
};

bool StartsWith(const Bytes& bytes, const Bytes& start) {
  return bytes.size() >= start.size() && std::equal(start.begin(), start.end(), bytes.begin());
}

void PrintLayout(const Kernel& kernel, const ContextRef& context) {
  using Layout = decltype(PackByTypes(Given()))::Layout;
  constexpr std::array<const char*, Layout::kCount> kTypes = {
      "int", "float4", "char", "float", "CUdeviceptr", "float2", "CUdeviceptr"};
  const absl::StatusOr<std::vector<KernelParameter>> known = kernel.Parameters(context);
  if (!CHECK_OK(known.status()) || !CHECK(known->size() == Layout::kCount)) return;
  for (std::size_t i = 0; i < Layout::kCount; ++i) {
    const cuguest::ParamPlace& place = Layout::kPlaces[i];
    PrintRow(kTypes[i], "at " + std::to_string(place.offset),
             std::to_string(place.size) + " bytes");
    CHECK((*known)[i].offset == place.offset && (*known)[i].size == place.size);
  }
}

void Mixed(Desk* desk) {
  PrintScene("The parameters of the guide's example");
  PrintLayout(desk->mixed, desk->stream.context());

  Given given;
  given.received = desk->received.get();
  const auto packed = PackByTypes(given);
  const absl::StatusOr<ParamBuffer> buffer = PackAtRunTime(given);
  if (!CHECK_OK(buffer.status())) return;
  CHECK(Bytes(packed.data(), packed.data() + packed.size()) == PackByHand(given));
  CHECK(Bytes(buffer->data(), buffer->data() + buffer->size()) == PackByHand(given));

  CHECK_OK(cuguest::Launch(desk->mixed, LaunchShape(), desk->stream.ref(), packed));
  const Bytes expected = SideBySide(given.i, given.f4, given.c, given.f, given.pointer, given.f2);
  CHECK(StartsWith(desk->Read(), expected));
  PrintRow("in the kernel", "bit for bit", "all three ways alike");
}

// As a header declares it that knows no <vector_types.h>.
struct FourFloats {
  float x, y, z, w;
};
template <typename Float4>
struct MyStruct {
  float f;
  Float4 f4;
};

void Struct(Desk* desk) {
  PrintScene("The guide's myStruct, on a host whose float4 is four floats");
  using OnTheHost = MyStruct<FourFloats>;
  using OnTheDevice = MyStruct<float4>;
  PrintRow("sizeof(MyStruct)", std::to_string(sizeof(OnTheHost)),
           "on the device " + std::to_string(sizeof(OnTheDevice)));
  const OnTheHost wrong = {1, {2, 3, 4, 5}};
  const DevicePtr received(desk->received.view());
  const absl::Status refused = cuguest::Launch(desk->with_struct, LaunchShape(), desk->stream.ref(),
                                               'a', wrong, 'z', received);
  PrintRow("Launch", "refused");
  support::PrintParagraph(std::string(refused.message()));
  CHECK(refused.code() == absl::StatusCode::kInvalidArgument);

  OnTheDevice right = {};
  right.f = 1;
  right.f4 = {2, 3, 4, 5};
  CHECK_OK(cuguest::Launch(desk->with_struct, LaunchShape(), desk->stream.ref(), 'a', right, 'z',
                           received));
  const Bytes bytes = desk->Read();
  OnTheDevice arrived = {};
  if (!CHECK(bytes.size() >= sizeof(arrived) + 2)) return;
  std::memcpy(&arrived, &bytes[1], sizeof(arrived));
  CHECK(bytes[0] == 'a' && bytes[1 + sizeof(arrived)] == 'z');
  CHECK(arrived.f == 1 && arrived.f4.x == 2 && arrived.f4.w == 5);
  PrintRow("with <vector_types.h>'s", "arrives");
}

absl::StatusOr<Desk> Prepare(const ContextRef& context) {
  const absl::StatusOr<Module> module =
      Module::Load({cuguest_kernels::layout_fatbin, cuguest_kernels::layout_fatbin_size}, "layout");
  if (!module.ok()) return module.status();
  absl::StatusOr<Kernel> mixed = module->GetKernel("layout_mixed");
  if (!mixed.ok()) return mixed.status();
  absl::StatusOr<Kernel> with_struct = module->GetKernel("layout_struct");
  if (!with_struct.ok()) return with_struct.status();
  absl::StatusOr<Stream> stream = Stream::Create(context);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<DeviceBuffer<unsigned char>> received =
      DeviceBuffer<unsigned char>::CopyOf(context, Bytes(64));
  if (!received.ok()) return received.status();
  return Desk{*std::move(mixed), *std::move(with_struct), *std::move(stream), *std::move(received)};
}

absl::Status Demonstrate(const cuguest::Driver&, cuguest::Device device) {
  const absl::StatusOr<SharedContext> context = SharedContext::Create(device);
  if (!context.ok()) return context.status();
  absl::StatusOr<Desk> desk = Prepare(context->incarnation());
  if (!desk.ok()) return desk.status();
  Mixed(&*desk);
  Struct(&*desk);
  return absl::OkStatus();
}

}  // namespace

int main() {
  return support::RunExample("Where must a kernel's parameters lie, and who works that out?",
                             &Demonstrate);
}
