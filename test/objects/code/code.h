// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the module tests share: code as PTX, its host functions on the simulation, and what they
// look at statuses with.

#ifndef CUGUEST_TEST_OBJECTS_CODE_CODE_H_
#define CUGUEST_TEST_OBJECTS_CODE_CODE_H_

#include <cuda.h>

#include <cstring>
#include <string>
#include <thread>

#include "cudasim/sim.h"
#include "cuguest/context_ref.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/module.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"

namespace module_test {

using absl::StatusCode;
using cudasim::Sim;
using cuguest::CodeImage;
using cuguest::CodeOf;
using cuguest::ContextRef;
using cuguest::JitOptions;
using cuguest::JitReport;
using cuguest::Kernel;
using cuguest::Module;

// store(unsigned* to, unsigned value), a C++ kernel blur(int), one that changes when it is
// told to (more shared memory), and variables of every kind.
inline constexpr char kCode[] = R"(
.version 6.0
.target sm_50
.address_size 64

.visible .global .align 4 .u32 counters[4] = {1, 2, 3, 4};
.visible .const .align 4 .f32 factor = 0f3F800000;
.visible .global .align 1 .b8 odd[3] = {7, 8, 9};
.visible .global .attribute(.managed) .align 4 .u32 common = 5;

.visible .entry store(.param .u64 to, .param .u32 value)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}

.visible .entry _Z4bluri(.param .u32 radius)
{
  ret;
}

.visible .entry bounded() .maxntid 64, 1, 1
{
  .shared .align 4 .b8 tile[1024];
  .reg .b32 %r<2>;
  mov.u32 %r1, tile;
  st.shared.u32 [tile], %r1;
  ret;
}
)";

inline constexpr char kBroken[] = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry broken()
{
  not.an.instruction %r1;
  ret;
}
)";

inline constexpr char kOfTheFuture[] = R"(
.version 99.0
.target sm_50
.address_size 64
.visible .entry later() { ret; }
)";

inline CodeImage Ptx(std::string_view text = kCode, std::string_view name = "code") {
  return CodeImage::FromPtx(text, name).value();
}

inline ContextRef Ref(CUcontext context) { return ContextRef::Borrow(context); }

// Written by store(), on the simulation.
inline CUresult Store(const cudasim::SimLaunch& launch) {
  unsigned* to = nullptr;
  std::memcpy(&to, launch.parameters[0], sizeof(to));
  std::memcpy(to, launch.parameters[1], sizeof(unsigned));
  return CUDA_SUCCESS;
}

inline bool Says(const absl::Status& status, std::string_view words) {
  return std::string_view(status.message().data(), status.message().size()).find(words) !=
         std::string_view::npos;
}

template <typename Function>
void OnAnotherThread(const Function& function) {
  std::thread(function).join();
}

}  // namespace module_test

// It is refused, with this canonical code and these words in the text.
#define REFUSED(status, canonical, words)                                            \
  do {                                                                               \
    const absl::Status refused = (status);                                           \
    BOOST_TEST((refused.code() == absl::StatusCode::canonical), refused.ToString()); \
    BOOST_TEST(module_test::Says(refused, words), refused.ToString());               \
  } while (false)

#define DONE(status)                        \
  do {                                      \
    const absl::Status done = (status);     \
    BOOST_TEST(done.ok(), done.ToString()); \
  } while (false)

#endif  // CUGUEST_TEST_OBJECTS_CODE_CODE_H_
