// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// At which offsets do a kernel's parameters lie? See docs/facts/kernel_parameters.md.

#include <cuda.h>
#include <vector_types.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/picture.h"
#include "kernels/layout.h"

namespace {

using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Kernel;
using cuguest::LaunchShape;
using cuguest::Module;
using cuguest::ParamBuffer;
using cuguest::SharedContext;
using cuguest::StreamRef;
using support::PrintRow;
using support::PrintScene;
using Bytes = std::vector<unsigned char>;

// The programming guide's ALIGN_UP() and ADD_TO_PARAM_BUFFER(), as a class.
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
  buffer.Add(given.i, alignof(int));
  buffer.Add(given.f4, 16);
  buffer.Add(given.c, alignof(char));
  buffer.Add(given.f, alignof(float));
  buffer.Add(given.pointer, alignof(CUdeviceptr));
  buffer.Add(given.f2, 8);
  buffer.Add(given.received, alignof(CUdeviceptr));
  return buffer.bytes();
}

// The offsets are computed from the types.
absl::StatusOr<ParamBuffer> PackByTypes(const Given& given) {
  ParamBuffer buffer;
  absl::Status status = buffer.Add(given.i);
  status.Update(buffer.Add(given.f4));
  status.Update(buffer.Add(given.c));
  status.Update(buffer.Add(given.f));
  status.Update(buffer.Add(given.pointer));
  status.Update(buffer.Add(given.f2));
  status.Update(buffer.Add(given.received));
  if (!status.ok()) return status;
  return buffer;
}

// The kernels of kernels/layout.cu write the bytes of their parameters, side by side, to where the
// last one points.
struct Bench {
  Module module;
  StreamRef stream;
  DeviceBuffer<unsigned char> received;

  [[nodiscard]] absl::StatusOr<Bytes> Read() const {
    CUGUEST_RETURN_IF_ERROR(stream.Synchronize());
    return cuguest::Download(received.view());
  }
};

void PrintLayout(const ParamBuffer& packed) {
  const char* const types[] = {"int",         "float4", "char",       "float",
                               "CUdeviceptr", "float2", "CUdeviceptr"};
  for (std::size_t i = 0; i < packed.parameters().size(); ++i) {
    const Kernel::Parameter& place = packed.parameters()[i];
    PrintRow(types[i], "offset " + std::to_string(place.offset),
             std::to_string(place.size) + " bytes");
  }
}

absl::Status Mixed(Bench* bench) {
  PrintScene("The parameters of the guide's example");
  CUGUEST_ASSIGN_OR_RETURN(const Kernel kernel, bench->module.GetKernel("layout_mixed"));
  Given given;
  given.received = bench->received.get();
  CUGUEST_ASSIGN_OR_RETURN(const ParamBuffer packed, PackByTypes(given));
  CHECK(Bytes(packed.data(), packed.data() + packed.size()) == PackByHand(given));
  PrintLayout(packed);
  // What the driver says of the compiled kernel.
  CUGUEST_ASSIGN_OR_RETURN(const auto known, kernel.ParametersIn(bench->stream.context()));
  CHECK(std::equal(known.begin(), known.end(), packed.parameters().begin(),
                   packed.parameters().end()));

  absl::Status status = cuguest::Launch(kernel, LaunchShape(), bench->stream, packed);
  if (!status.ok()) return status;
  CUGUEST_ASSIGN_OR_RETURN(const Bytes read, bench->Read());
  int i = 0;
  float4 arrived = {};
  std::memcpy(&i, read.data(), sizeof(i));
  std::memcpy(&arrived, read.data() + sizeof(i), sizeof(arrived));
  CHECK(i == given.i);
  CHECK(arrived.x == 1 && arrived.y == 2 && arrived.z == 3 && arrived.w == 4);
  PrintRow("in the kernel", "right");
  return absl::OkStatus();
}

// As a header declares it that does not include <vector_types.h>.
struct FourFloats {
  float x, y, z, w;
};
template <typename Float4>
struct MyStruct {
  float f;
  Float4 f4;
};

// The guide's myStruct: 20 bytes where a float4 is four floats, 32 in device code.
absl::Status Struct(Bench* bench) {
  PrintScene("The guide's myStruct, on a host whose float4 is four floats");
  CUGUEST_ASSIGN_OR_RETURN(const Kernel kernel, bench->module.GetKernel("layout_struct"));
  const DevicePtr received(bench->received.view());

  const MyStruct<FourFloats> wrong = {1, {2, 3, 4, 5}};
  absl::Status status =
      cuguest::Launch(kernel, LaunchShape(), bench->stream, 'a', wrong, 'z', received);
  PrintRow("four floats", "refused", std::to_string(sizeof(wrong)) + " bytes");
  support::PrintParagraph(std::string(status.message()));
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);

  const MyStruct<float4> right = {1, {2, 3, 4, 5}};
  status = cuguest::Launch(kernel, LaunchShape(), bench->stream, 'a', right, 'z', received);
  if (!status.ok()) return status;
  PrintRow("<vector_types.h>", "right", std::to_string(sizeof(right)) + " bytes");
  CUGUEST_ASSIGN_OR_RETURN(const Bytes bytes, bench->Read());
  MyStruct<float4> arrived = {};
  std::memcpy(&arrived, bytes.data() + 1, sizeof(arrived));
  CHECK(bytes[0] == 'a' && bytes[1 + sizeof(arrived)] == 'z');
  CHECK(arrived.f == 1 && arrived.f4.x == 2 && arrived.f4.w == 5);
  return absl::OkStatus();
}

absl::Status Demonstrate(const cuguest::Driver&, cuguest::Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const SharedContext context, SharedContext::Create(device));
  absl::StatusOr<Module> module = Module::LoadIn(
      context.context(), {cuguest_kernels::layout_fatbin, cuguest_kernels::layout_fatbin_size},
      "layout");
  CUGUEST_RETURN_IF_ERROR(module);
  CUGUEST_ASSIGN_OR_RETURN(const cuguest::Stream stream,
                           cuguest::Stream::Create(context.context()));
  absl::StatusOr<DeviceBuffer<unsigned char>> received =
      DeviceBuffer<unsigned char>::CopyOf(context.context(), Bytes(64));
  CUGUEST_RETURN_IF_ERROR(received);
  Bench bench{*std::move(module), stream.ref(), *std::move(received)};
  CUGUEST_RETURN_IF_ERROR(Mixed(&bench));
  return Struct(&bench);
}

}  // namespace

int main() {
  return support::RunExample("At which offsets do a kernel's parameters lie?", &Demonstrate);
}
