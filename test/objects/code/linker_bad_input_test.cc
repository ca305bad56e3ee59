// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs that cannot be linked: which one it is, and what the linker says of it. The linker is
// as it was, and nothing is left behind, also where the driver fails for no such reason.

#include "test/objects/code/links.h"
#include "test/support/advised.h"

BOOST_AUTO_TEST_SUITE(linker_bad_input)

namespace {

using namespace cuguest_test;

const char kMalformed[] = ".visible .entry broken()\n{\n  add.s32 %r1, %r2;\n  ret;\n}\n";

// Whether linking goes on as before.
void CheckStillLinks(const Owner& owner) {
  BOOST_TEST(Twists(owner, Link(owner.ref(), TwistInputs())));
}

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_at_all) {
  const Owner owner;
  const Undisturbed undisturbed;
  JitReport report;
  report.info_log = "of before";
  REFUSES(Link(owner.ref(), {}, {}, &report).status(), kInvalidArgument, "nothing was added");
  BOOST_TEST(report.info_log == "");
}

BOOST_AUTO_TEST_CASE(the_input_that_is_malformed_is_named) {
  const Owner owner;
  {
    const Undisturbed undisturbed;
    const std::vector<CodeImage> inputs = {IMAGE(linked_relocatable_ptx),
                                           PtxWith(kMalformed, "broken.ptx"),
                                           IMAGE(linked_part_relocatable_ptx)};
    const absl::Status status = Link(owner.ref(), inputs).status();
    REFUSES(status, kInvalidArgument, "link", "input 2 of 3, broken.ptx", "line 6");
    BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_INVALID_PTX));
  }
  CheckStillLinks(owner);
}

BOOST_AUTO_TEST_CASE(a_symbol_that_is_nowhere_is_named) {
  const Owner owner;
  {
    const Undisturbed undisturbed;
    for (const CodeImage& kernel : {IMAGE(linked_relocatable_ptx), IMAGE(linked_relocatable_cubin),
                                    IMAGE(linked_relocatable_fatbin), IMAGE(linked_object)}) {
      // The driver's code for it is CUDA_ERROR_UNKNOWN, or CUDA_ERROR_INVALID_SOURCE.
      REFUSES(Link(owner.ref(), {kernel}).status(), kInvalidArgument, "link, " + kernel.name(),
              "Undefined reference", "Twist");
    }
  }
  CheckStillLinks(owner);
}

BOOST_AUTO_TEST_CASE(a_symbol_that_is_there_twice_is_named) {
  const Owner owner;
  {
    const Undisturbed undisturbed;
    const std::vector<CodeImage> inputs = {IMAGE(linked_relocatable_ptx),
                                           IMAGE(linked_part_relocatable_ptx),
                                           IMAGE(linked_part_relocatable_cubin)};
    const absl::Status status = Link(owner.ref(), inputs).status();
    REFUSES(status, kInvalidArgument, "input 3 of 3, linked_part_relocatable_cubin",
            "Multiple definition", "Twist", "linked_part_relocatable_ptx");
  }
  CheckStillLinks(owner);
}

BOOST_AUTO_TEST_CASE(code_for_another_architecture) {
  const Owner owner;
  const Undisturbed undisturbed;
  const absl::Status status = Link(owner.ref(), {IMAGE(linked_relocatable_ptx),
                                                 IMAGE(linked_part_oldest_relocatable_cubin)})
                                  .status();
  REFUSES(status, kFailedPrecondition, "input 2 of 2", "architecture",
          ", for device 0 (compute capability ", "; the image holds sm_75");
  BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_NO_BINARY_FOR_GPU));
}

BOOST_AUTO_TEST_CASE(a_cubin_that_is_linked_already) {
  const Owner owner;
  const CodeImage linked = Link(owner.ref(), TwistInputs()).value();
  REFUSES(Link(owner.ref(), {IMAGE(linked_part_relocatable_ptx), linked}).status(),
          kInvalidArgument, "input 2 of 2", "linked already",
          Advised("compile it with nvcc -rdc=true"));
  SUCCEEDS(Link(owner.ref(), TwistInputs()).status());  // each is
}

BOOST_AUTO_TEST_CASE(ptx_that_is_newer_than_the_driver) {
  const Owner owner;
  const CodeImage newer = Ptx(".version 99.0\n.target sm_50\n.address_size 64\n", "newer.ptx");
  const absl::Status status = Link(owner.ref(), {newer}).status();
  REFUSES(status, kUnimplemented, "newer.ptx");
  BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
}

BOOST_AUTO_TEST_CASE(options_that_cannot_be) {
  const Owner owner;
  JitOptions none;
  none.max_registers = 0;
  REFUSES(Link(owner.ref(), TwistInputs(), none).status(), kInvalidArgument, "max_registers");
  JitOptions no_threads;
  no_threads.threads_per_block = 0;
  REFUSES(Link(owner.ref(), TwistInputs(), no_threads).status(), kInvalidArgument,
          "threads_per_block");
}

BOOST_AUTO_TEST_CASE(every_driver_call_fails_once, *OnlySim()) {
  const Owner owner;
  const Linker linker = LinkerOf(owner.ref(), TwistInputs());
  FailEachCall({"cuCtxGetId", "cuCtxGetCurrent", "cuCtxPushCurrent", "cuLinkCreate",
                "cuLinkAddData", "cuLinkComplete"},
               [&] { return linker.Complete(); });
  CheckStillLinks(owner);
}

// The image is there, and only memory of the driver's is lost.
BOOST_AUTO_TEST_CASE(a_state_that_the_driver_does_not_destroy, *OnlySim()) {
  const Owner owner;
  cudasim::Sim::FailCall("cuLinkDestroy", 1, CUDA_ERROR_OPERATING_SYSTEM);
  BOOST_TEST(Twists(owner, Link(owner.ref(), TwistInputs())));
  cudasim::Sim::ClearFaults();
}

BOOST_AUTO_TEST_SUITE_END()
