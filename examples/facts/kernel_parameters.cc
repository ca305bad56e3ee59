// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// At which offsets do a kernel's parameters lie? See docs/facts/kernel_parameters.md.

#include <vector_types.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_ptr.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/param_buffer.h"
#include "cuguest/status.h"
#include "examples/support/stage.h"
#include "kernels/layout.h"

namespace {

using cuguest::LaunchShape;
using cuguest::ParamBuffer;
using support::PrintRow;
using Bytes = std::vector<unsigned char>;

// The programming guide's ALIGN_UP() and ADD_TO_PARAM_BUFFER().
template <typename T>
void AddByHand(const T& value, std::size_t alignment, Bytes* buffer) {
  const std::size_t offset = (buffer->size() + alignment - 1) & ~(alignment - 1);
  buffer->resize(offset + sizeof(value));
  std::memcpy(buffer->data() + offset, &value, sizeof(value));
}

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
  Bytes buffer;
  AddByHand(given.i, alignof(int), &buffer);
  AddByHand(given.f4, 16, &buffer);
  AddByHand(given.c, alignof(char), &buffer);
  AddByHand(given.f, alignof(float), &buffer);
  AddByHand(given.pointer, alignof(CUdeviceptr), &buffer);
  AddByHand(given.f2, 8, &buffer);
  AddByHand(given.received, alignof(CUdeviceptr), &buffer);
  return buffer;
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

// As a header declares it that does not include <vector_types.h>.
struct FourFloats {
  float x, y, z, w;
};
template <typename Float4>
struct MyStruct {
  float f;
  Float4 f4;
};

// The kernels of kernels/layout.cu write the bytes of their parameters, side by side, to where the
// last one points.
absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  support::Stage stage(driver, device, {"A"});
  const auto a = cuguest::ContextRef::Borrow(stage["A"]);
  CUGUEST_ASSIGN_OR_RETURN(
      const auto module,
      cuguest::Module::Load({cuguest_kernels::layout_fatbin, cuguest_kernels::layout_fatbin_size},
                            "layout"));
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(a));
  CUGUEST_ASSIGN_OR_RETURN(auto received,
                           cuguest::DeviceBuffer<unsigned char>::CopyOf(a, Bytes(64)));

  support::PrintScene("The parameters of the guide's example");
  CUGUEST_ASSIGN_OR_RETURN(const auto mixed, module.GetKernel("layout_mixed"));
  Given given;
  given.received = received.get();
  CUGUEST_ASSIGN_OR_RETURN(const ParamBuffer packed, PackByTypes(given));
  CHECK(Bytes(packed.data(), packed.data() + packed.size()) == PackByHand(given));
  for (const cuguest::Kernel::Parameter& place : packed.parameters()) {
    PrintRow("offset " + std::to_string(place.offset), std::to_string(place.size) + " bytes");
  }
  CUGUEST_ASSIGN_OR_RETURN(const auto known, mixed.ParametersIn(a));  // of the compiled kernel
  const auto places = packed.parameters();
  CHECK(std::equal(known.begin(), known.end(), places.begin(), places.end()));
  CUGUEST_RETURN_IF_ERROR(cuguest::Launch(mixed, LaunchShape(), stream, packed));
  CUGUEST_ASSIGN_OR_RETURN(Bytes bytes, cuguest::Download(received.view(), stream));
  int i = 0;
  float4 f4 = {};
  std::memcpy(&i, bytes.data(), sizeof(i));
  std::memcpy(&f4, bytes.data() + sizeof(int), sizeof(f4));
  CHECK(i == given.i && f4.x == 1 && f4.y == 2 && f4.z == 3 && f4.w == 4);

  // 20 bytes where a float4 is four floats, 32 in device code.
  support::PrintScene("The guide's myStruct, on a host whose float4 is four floats");
  CUGUEST_ASSIGN_OR_RETURN(const auto kernel, module.GetKernel("layout_struct"));
  const cuguest::DevicePtr to(received.view());
  const MyStruct<FourFloats> wrong = {1, {2, 3, 4, 5}};
  const absl::Status refused = cuguest::Launch(kernel, LaunchShape(), stream, 'a', wrong, 'z', to);
  CHECK(support::IsRefused("four floats", refused, absl::StatusCode::kInvalidArgument));

  const MyStruct<float4> right = {1, {2, 3, 4, 5}};
  CUGUEST_RETURN_IF_ERROR(cuguest::Launch(kernel, LaunchShape(), stream, 'a', right, 'z', to));
  CUGUEST_ASSIGN_OR_RETURN(bytes, cuguest::Download(received.view(), stream));
  MyStruct<float4> arrived = {};
  std::memcpy(&arrived, bytes.data() + 1, sizeof(arrived));
  CHECK(bytes[0] == 'a' && bytes[1 + sizeof(arrived)] == 'z');
  CHECK(arrived.f == 1 && arrived.f4.x == 2 && arrived.f4.w == 5);
  PrintRow("<vector_types.h>", "right", std::to_string(sizeof(right)) + " bytes");
  return absl::OkStatus();
}

}  // namespace

int main() {
  return support::RunExample("At which offsets do a kernel's parameters lie?", &Demonstrate);
}
