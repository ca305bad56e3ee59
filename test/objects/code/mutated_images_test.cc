// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Damaged images, through everything that one does with an image from a place that is not
// trusted: each is refused, by CodeImage or its Validate(), or loads and unloads. None harms the
// process, the context or the device, and none leaves anything behind. No kernel of a damaged
// image is launched: damaged code can be told from code by nobody.

#include <cstdlib>
#include <string>

#include "test/objects/code/code.h"
#include "test/objects/code/mutations.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(mutated_images)

using namespace module_test;
using cuguest_test::OnlyReal;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;

namespace {

// Of each sample and kind of damage. CUGUEST_TEST_MUTATIONS asks for more.
int Repetitions() {
  const char* asked = std::getenv("CUGUEST_TEST_MUTATIONS");
  return asked == nullptr ? 16 : std::atoi(asked);
}

bool CanBeLoaded(CodeImage::Kind kind) {
  return kind == CodeImage::Kind::kPtx || kind == CodeImage::Kind::kCubin ||
         kind == CodeImage::Kind::kFatbin;
}

struct Counts {
  int images = 0;
  int no_image = 0;  // by CodeImage
  int refused = 0;   // by its Validate()
  int failed = 0;    // in the driver
  int loaded = 0;
};

// Asks for whatever there is to know of the code.
void Use(const Module& module, const ContextRef& context) {
  const auto names = module.KernelNames();
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const auto kernel = module.GetKernel(name);
    if (!kernel.ok()) continue;
    static_cast<void>(kernel->FunctionIn(context));
    static_cast<void>(kernel->Preload(context));
    static_cast<void>(kernel->AttributesIn(context));
    static_cast<void>(kernel->ParametersIn(context));
  }
  for (const char* name : {"counter", "table", "weights"}) {
    static_cast<void>(module.GetGlobal<unsigned char>(context, name));
  }
}

void CheckRefusal(const absl::Status& status) {
  BOOST_TEST((status.code() == StatusCode::kInvalidArgument));
  BOOST_TEST(Says(status, "\"damaged\", "), status.ToString());
}

// What is asked of an image before it is loaded.
using Check = absl::Status (*)(const CodeImage& image);

absl::Status Validate(const CodeImage& image) { return image.Validate(); }
absl::Status Trust(const CodeImage& /*image*/) { return absl::OkStatus(); }

void Try(const Bytes& bytes, Check check, const ContextRef& context, Counts* counts) {
  const AtTheEndOfMemory memory(bytes);
  ++counts->images;
  const auto image = CodeImage::Borrow(memory.span(), "damaged");
  if (!image.ok()) {
    ++counts->no_image;
    return CheckRefusal(image.status());
  }
  const absl::Status sound = check(*image);
  if (!sound.ok()) {
    ++counts->refused;
    return CheckRefusal(sound);
  }
  if (!CanBeLoaded(image->kind())) return;
  auto module = Module::LoadIn(context, *image);
  if (!module.ok()) {
    ++counts->failed;
    BOOST_TEST(Says(module.status(), "damaged"), module.status().ToString());
    return;
  }
  ++counts->loaded;
  Use(*module, context);
  DONE(module->Release());
}

Counts TryAll(Check check, const ContextRef& context) {
  Counts counts;
  for (const Sample& sample : Samples()) {
    for (const Mutation& mutation : kMutations) {
      for (int i = 0; i < Repetitions(); ++i) {
        const std::string seed =
            sample.name + ", " + mutation.name + ", number " + std::to_string(i);
        BOOST_TEST_CHECKPOINT(seed);
        Chance chance(seed);
        Try(mutation.mutate(sample.bytes, &chance), check, context, &counts);
      }
    }
  }
  return counts;
}

// What the first use of anything leaves in the context for good.
void WarmUp(const ContextRef& context) {
  Counts counts;
  for (const Sample& sample : Samples()) Try(sample.bytes, &Validate, context, &counts);
}

void CheckWorks(CUcontext context) {
  SetStack({context});
  CUdeviceptr memory = 0;
  unsigned value = 0;
  BOOST_TEST(RAW(cuMemAlloc)(&memory, sizeof(value)) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuMemsetD32)(memory, 7, 1) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuMemcpyDtoH)(&value, memory, sizeof(value)) == CUDA_SUCCESS);
  BOOST_TEST(value == 7U);
  BOOST_TEST(RAW(cuMemFree)(memory) == CUDA_SUCCESS);
  SetStack({});
}

std::size_t FreeMemory(CUcontext context) {
  std::size_t free = 0;
  std::size_t total = 0;
  SetStack({context});
  BOOST_TEST(RAW(cuCtxSynchronize)() == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuMemGetInfo)(&free, &total) == CUDA_SUCCESS);
  SetStack({});
  return free;
}

}  // namespace

BOOST_AUTO_TEST_CASE(damage_is_refused_or_harmless_and_leaves_nothing_behind) {
  constexpr std::size_t kSlack = std::size_t{4} << 20;  // what other processes may do meanwhile
  const OwnContext own;
  const ContextRef context = Ref(own.get());
  WarmUp(context);
  const auto live = Sim::Live();
  const std::size_t free = FreeMemory(own.get());
  const Counts counts = TryAll(&Validate, context);
  BOOST_TEST_MESSAGE(counts.images << " damaged images: " << counts.no_image << " are none, "
                                   << counts.refused << " refused by Validate(), " << counts.failed
                                   << " failed to load, " << counts.loaded << " loaded");
  BOOST_TEST((Sim::Live() == live));
  BOOST_TEST(FreeMemory(own.get()) + kSlack >= free);
  CheckWorks(own.get());
  BOOST_TEST(counts.images >= 1000);
  BOOST_TEST(counts.no_image > 0);
  BOOST_TEST(counts.refused > 0);
  BOOST_TEST(counts.failed > 0);
  BOOST_TEST(counts.loaded > 0);
}

// The driver may crash of an image that nobody validated; the simulation does not.
BOOST_AUTO_TEST_CASE(the_simulation_has_an_answer_to_all_damage, *OnlySim()) {
  const OwnContext own;
  const ContextRef context = Ref(own.get());
  WarmUp(context);
  const auto live = Sim::Live();
  const Counts counts = TryAll(&Trust, context);
  BOOST_TEST((Sim::Live() == live));
  BOOST_TEST(counts.refused == 0);
  BOOST_TEST(counts.failed > 0);
  BOOST_TEST(counts.loaded > 0);
}

BOOST_AUTO_TEST_SUITE_END()
