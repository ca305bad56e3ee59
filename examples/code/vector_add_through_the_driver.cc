// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How is the programming guide's first program of the driver API written with cuguest?
//
//   the guide's vector addition        | here
//   -----------------------------------+-------------------------------------------------
//   cuInit, cuDeviceGet                | DeviceAt, which RunExample has called
//   cuCtxCreate, current from then on  | SharedContext::Create, current nowhere
//   cuModuleLoad, cuModuleGetFunction  | Module::LoadIn, Module::GetKernel
//   cuMemAlloc, cuMemcpyHtoD           | DeviceBuffer::CopyOf
//   (N + 255) / 256 blocks             | LaunchForElements
//   cuLaunchKernel, on stream 0        | a launch on a stream, which names the context
//   cuMemcpyDtoH                       | Download
//   no error is checked, nothing freed | every step returns a Status; everything is freed in
//                                      | its own context, whatever is current then
//
// cuLaunchKernel takes the parameters as an array of pointers, or in one buffer in which they lie
// as the kernel reads them. cuguest has both forms with types, where the compiler makes the array
// or the buffer, and without, for programs that learn at run time what they launch
// (generate_code_at_run_time.cc).

#include <initializer_list>
#include <vector>

#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_ptr.h"
#include "cuguest/objects/host_span.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/param_buffer.h"
#include "cuguest/objects/typed_kernel.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "examples/support/stage.h"
#include "kernels/vector_add.h"

namespace program {

using cuguest::DevicePtr;
using cuguest::Kernel;
using cuguest::LaunchForElements;
using cuguest::StreamRef;
using Buffer = cuguest::DeviceBuffer<float>;
using Numbers = std::vector<float>;

absl::Status LaunchWithValues(const Kernel& kernel, unsigned n, const StreamRef& stream,
                              const Buffer& a, const Buffer& b, Buffer& c) {
  return LaunchForElements(kernel, n, stream, n, a, b, c);
}

// Converts its arguments as a function does.
absl::Status LaunchTyped(const Kernel& kernel, unsigned n, const StreamRef& stream, const Buffer& a,
                         const Buffer& b, Buffer& c) {
  using VectorAdd = cuguest::TypedKernel<void(unsigned n, DevicePtr<const float> a,
                                              DevicePtr<const float> b, DevicePtr<float> c)>;
  return VectorAdd::Of(kernel).LaunchForElements(n, stream, n, a.view(), b.view(), c.view());
}

// The guide's args[].
absl::Status LaunchWithPointers(const Kernel& kernel, unsigned n, const StreamRef& stream,
                                const Buffer& a, const Buffer& b, Buffer& c) {
  CUdeviceptr vectors[] = {a.get(), b.get(), c.get()};
  void* const args[] = {&n, &vectors[0], &vectors[1], &vectors[2]};
  return LaunchForElements(kernel, n, stream, cuguest::HostSpan<void* const>(args));
}

// The guide's paramBuffer.
absl::Status LaunchWithBuffer(const Kernel& kernel, unsigned n, const StreamRef& stream,
                              const Buffer& a, const Buffer& b, Buffer& c) {
  cuguest::ParamBuffer params;
  absl::Status status = params.Add(n);
  for (const Buffer* vector : std::initializer_list<const Buffer*>{&a, &b, &c})
    status.Update(params.Add(vector->get()));
  CUGUEST_RETURN_IF_ERROR(status);
  return LaunchForElements(kernel, n, stream, params);
}

// The guide's program, with one of these launches.
absl::StatusOr<Numbers> Add(cuguest::Device device, const Numbers& x, const Numbers& y,
                            decltype(&LaunchWithValues) launch) {
  CUGUEST_ASSIGN_OR_RETURN(const auto own, cuguest::SharedContext::Create(device));
  CUGUEST_ASSIGN_OR_RETURN(
      const auto module,
      cuguest::Module::LoadIn(
          own, {cuguest_kernels::vector_add_fatbin, cuguest_kernels::vector_add_fatbin_size},
          "vector_add.fatbin"));
  CUGUEST_ASSIGN_OR_RETURN(const Kernel kernel, module.GetKernel("vector_add"));
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(own));
  CUGUEST_ASSIGN_OR_RETURN(const Buffer a, Buffer::CopyOf(own, x));
  CUGUEST_ASSIGN_OR_RETURN(const Buffer b, Buffer::CopyOf(own, y));
  CUGUEST_ASSIGN_OR_RETURN(Buffer c, Buffer::Allocate(own, x.size()));
  CUGUEST_RETURN_IF_ERROR(launch(kernel, static_cast<unsigned>(x.size()), stream, a, b, c));
  return cuguest::Download(c.view(), stream);
}

}  // namespace program

namespace host {

using support::Ramp;

void AddAndCheck(const char* how, cuguest::Device device,
                 decltype(&program::LaunchWithValues) launch) {
  const auto sum = program::Add(device, Ramp(1), Ramp(2), launch);
  support::PrintRow(how, CHECK(support::Has(sum, Ramp(3))) ? "right" : "WRONG");
}

absl::Status Demonstrate(const cuguest::ObjectDriver&, cuguest::Device device) {
  const support::Undisturbed undisturbed;
  AddAndCheck("values", device, &program::LaunchWithValues);
  AddAndCheck("a typed kernel", device, &program::LaunchTyped);
  AddAndCheck("the guide's args[]", device, &program::LaunchWithPointers);
  AddAndCheck("the guide's paramBuffer", device, &program::LaunchWithBuffer);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "How is the programming guide's first program of the driver API written with cuguest?",
      &host::Demonstrate);
}
