// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Images of every kind that nvcc makes: those that can be loaded, and what is said of the
// others.

#include <string>
#include <vector>

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

BOOST_FIXTURE_TEST_CASE(code_for_another_device_is_refused, Fixture) {
  const absl::Status status = Load(IMAGE(oldest_cubin));
  BOOST_TEST((CodeOf(status) == CUDA_ERROR_NO_BINARY_FOR_GPU), status.ToString());
  REFUSED(status, kFailedPrecondition, Advised("PTX for it or an older one: compile for it"));
  DONE(Load(IMAGE(cubin)));
}

#undef IMAGE

BOOST_AUTO_TEST_SUITE_END()
