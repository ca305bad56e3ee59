// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Images of every kind that nvcc makes: those that can be loaded, and what is said of the
// others.

#include <cstdint>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "kernels/images.h"
#include "test/objects/code/code.h"
#include "test/support/advised.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(image_kinds)

using namespace module_test;
using cuguest_test::OwnContext;

namespace {

// A name as in images.h.
#define IMAGE(kind) \
  CodeImage::Borrow({cuguest_kernels::images_##kind, cuguest_kernels::images_##kind##_size}, #kind)

struct Fixture {
  OwnContext context;
  ContextRef here = Ref(context.get());
  std::vector<std::string> names = Module::Load(IMAGE(ptx).value())->KernelNames().value();

  absl::Status Load(const absl::StatusOr<CodeImage>& image) const {
    DONE(image.status());
    return Module::LoadIn(here, *image).status();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(finished_code_is_loaded_and_has_the_same_kernels, Fixture) {
  BOOST_TEST(!names.empty());
  for (const auto& image :
       {IMAGE(ptx), IMAGE(cubin), IMAGE(fatbin), IMAGE(compressed_fatbin), IMAGE(fast_fatbin)}) {
    DONE(image.status());
    const auto module = Module::LoadIn(here, *image);
    DONE(module.status());
    if (!module.ok()) continue;
    BOOST_TEST(module->KernelNames().value() == names, image->name());
    for (const std::string& name : names) {
      DONE(module->GetKernel(name)->FunctionIn(here).status());
    }
    DONE(module->Preload(here));
  }
}

BOOST_FIXTURE_TEST_CASE(unfinished_code_needs_a_linker, Fixture) {
  for (const auto& image :
       {IMAGE(relocatable_cubin), IMAGE(object), IMAGE(archive), IMAGE(lto_ir)}) {
    const absl::Status status = Load(image);
    REFUSED(status, kInvalidArgument, "a Linker makes an image of it");
    BOOST_TEST((CodeOf(status) == CUDA_ERROR_INVALID_IMAGE));
  }
}

// The tests' devices are no sm_75.
BOOST_FIXTURE_TEST_CASE(code_for_another_device_is_refused, Fixture) {
  const absl::Status status = Load(IMAGE(oldest_cubin));
  BOOST_TEST((CodeOf(status) == CUDA_ERROR_NO_BINARY_FOR_GPU), status.ToString());
  for (const char* const words :
       {"oldest_cubin", "device 0 (compute capability ", "; the image holds sm_75"}) {
    REFUSED(status, kFailedPrecondition, words);
  }
  REFUSED(status, kFailedPrecondition, Advised("PTX for it or an older one: compile for it"));
  DONE(Load(IMAGE(cubin)));
}

// NVIDIA/cuda-samples#170: the program had code, and none for the device at hand.
BOOST_FIXTURE_TEST_CASE(a_fatbin_says_what_it_has, Fixture) {
  const auto append = [](std::string* to, const auto& value) {
    to->append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const auto oldest = IMAGE(oldest_cubin);
  const cuguest::HostSpan<const unsigned char> bytes = oldest->bytes();
  const std::string cubin(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string later = ".version 9.0\n.target sm_999\n.address_size 64\n";
  // A header, and of each entry a header and what it says (lib/image/include/cudaimage/fatbin.h).
  struct Entry {
    std::uint16_t kind;
    std::uint32_t architecture;
    const std::string& payload;
  };
  std::string entries;
  for (const Entry& entry : {Entry{2, 75, cubin}, Entry{1, 999, later}}) {
    append(&entries, entry.kind);
    append(&entries, std::uint16_t{0x101});
    append(&entries, std::uint32_t{64});
    append(&entries, std::uint64_t{entry.payload.size()});
    for (const std::uint32_t field : {0u, 0u, 0u, entry.architecture, 0u, 0u})
      append(&entries, field);
    for (int i = 0; i < 3; ++i) append(&entries, std::uint64_t{0});
    entries += entry.payload;
  }
  std::string fatbin;
  append(&fatbin, std::uint32_t{0xba55ed50});
  append(&fatbin, std::uint16_t{1});
  append(&fatbin, std::uint16_t{16});
  append(&fatbin, std::uint64_t{entries.size()});
  fatbin += entries;
  const absl::Status status = Load(CodeImage::Copy(
      {reinterpret_cast<const unsigned char*>(fatbin.data()), fatbin.size()}, "program.fatbin"));
  BOOST_TEST((CodeOf(status) == CUDA_ERROR_NO_BINARY_FOR_GPU), status.ToString());
  for (const char* const words : {"program.fatbin", "device 0 (compute capability ",
                                  "; the image holds sm_75, PTX for sm_999"}) {
    REFUSED(status, kFailedPrecondition, words);
  }
}

// As a driver without code libraries says it in each context, and one with them where it is asked
// for something of the image later.
BOOST_FIXTURE_TEST_CASE(later_refusals_say_what_it_holds, Fixture,
                        *cuguest_test::OnlySim() *
                            cuguest_test::NeedsDriver(12000, "code libraries")) {
  const auto image = IMAGE(cubin);
  const char* const entries[] = {"cuKernelGetFunction", "cuLibraryGetModule", "cuLibraryGetGlobal"};
  for (const char* const entry : entries) {
    const absl::StatusOr<Module> module = Module::Load(*image);
    BOOST_TEST_REQUIRE(module.ok(), module.status().ToString());
    cudasim::Sim::FailCall(entry, 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
    const absl::Status status =
        entry == entries[0]   ? module->GetKernel(names.front())->FunctionIn(here).status()
        : entry == entries[1] ? Module::LoadIn(here, *image).status()
                              : module->GetGlobal<int>(here, "no_variable").status();
    cudasim::Sim::ClearFaults();
    REFUSED(status, kFailedPrecondition, "on device 0 (compute capability ");
    REFUSED(status, kFailedPrecondition, "; the image holds sm_");
  }
}

#undef IMAGE

BOOST_AUTO_TEST_SUITE_END()
