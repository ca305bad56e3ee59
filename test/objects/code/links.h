// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of linker.h share: a kernel in one image, the function it calls in another,
// and whether they found each other.

#ifndef CUGUEST_TEST_OBJECTS_CODE_LINKS_H_
#define CUGUEST_TEST_OBJECTS_CODE_LINKS_H_

#include <string>
#include <utility>
#include <vector>

#include "cuguest/objects/code_image.h"
#include "cuguest/objects/linker.h"
#include "kernels/linked.h"
#include "kernels/linked_part.h"
#include "test/objects/memory/memories.h"

namespace cuguest_test {

using cuguest::CodeImage;
using cuguest::ContextRef;
using cuguest::JitOptions;
using cuguest::JitReport;
using cuguest::Linker;

// IMAGE(linked_part_relocatable_ptx): an array of kernels/, named as such.
#define IMAGE(array) \
  cuguest_test::Embedded(cuguest_kernels::array, cuguest_kernels::array##_size, #array)

inline CodeImage Embedded(const unsigned char* bytes, size_t size, const char* name) {
  absl::StatusOr<CodeImage> image = CodeImage::Borrow({bytes, size}, name);
  BOOST_TEST_REQUIRE(image.ok(), image.status().ToString());
  return *std::move(image);
}

inline CodeImage Ptx(const std::string& text, const char* name) {
  absl::StatusOr<CodeImage> image = CodeImage::FromPtx(text, name);
  BOOST_TEST_REQUIRE(image.ok(), image.status().ToString());
  return *std::move(image);
}

// The body of a PTX module for every device there is.
inline CodeImage PtxWith(const std::string& body, const char* name) {
  return Ptx(".version 7.0\n.target sm_50\n.address_size 64\n" + body, name);
}

inline Linker LinkerOf(const ContextRef& context, const std::vector<CodeImage>& inputs,
                       const JitOptions& options = {}) {
  Linker linker(context, options);
  for (const CodeImage& input : inputs) linker.Add(input);
  return linker;
}

inline absl::StatusOr<CodeImage> Link(const ContextRef& context,
                                      const std::vector<CodeImage>& inputs,
                                      const JitOptions& options = {}, JitReport* report = nullptr) {
  return LinkerOf(context, inputs, options).Complete(report);
}

// Since the last Sim::ResetCalls(), but for those that nvJitLink makes itself, by which the
// simulation links too.
inline std::uint64_t CallsOfTheLinker() {
  using cudasim::Sim;
  return Sim::TotalCalls() - Sim::Calls("cuInit") - Sim::Calls("cuGetExportTable");
}

// The kernel `twist` with what it calls, as PTX.
inline std::vector<CodeImage> TwistInputs() {
  return {IMAGE(linked_relocatable_ptx), IMAGE(linked_part_relocatable_ptx)};
}

// For the simulation: as linked.cu and linked_part.cu have it.
inline CUresult TwistOnHost(const cudasim::SimLaunch& launch) {
  const unsigned n = *static_cast<const unsigned*>(launch.parameters[0]);
  float* const values = *static_cast<float* const*>(launch.parameters[1]);
  for (unsigned i = 0; i < n; ++i) values[i] = 2 * values[i] + 1;
  return CUDA_SUCCESS;
}

// Runs `twist` of the image in the owner's context. Whether it did what it should.
inline bool Twists(const Owner& owner, const CodeImage& image) {
  cudasim::Sim::RegisterKernel("twist", &TwistOnHost);
  unsigned n = 3;
  const std::vector<float> values = {0, 1, 2};
  CUdeviceptr pointer = owner.Allocate(n * sizeof(float));
  owner.Enter();
  OK(RAW(cuMemcpyHtoD)(pointer, values.data(), n * sizeof(float)));
  CUmodule module = nullptr;
  OK(RAW(cuModuleLoadData)(&module, image.bytes().data()));
  CUfunction function = nullptr;
  OK(RAW(cuModuleGetFunction)(&function, module, "twist"));
  void* parameters[] = {&n, &pointer};
  OK(RAW(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  std::vector<float> twisted(n);
  OK(RAW(cuMemcpyDtoH)(twisted.data(), pointer, n * sizeof(float)));
  OK(RAW(cuModuleUnload)(module));
  OK(RAW(cuMemFree)(pointer));
  SetStack({});
  return twisted == std::vector<float>{1, 3, 5};
}

inline bool Twists(const Owner& owner, const absl::StatusOr<CodeImage>& image) {
  BOOST_TEST_REQUIRE(image.ok(), image.status().ToString());
  return Twists(owner, *image);
}

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_OBJECTS_CODE_LINKS_H_
