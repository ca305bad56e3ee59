// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/linker.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <thread>

#include "cuguest/objects/module.h"
#include "test/objects/code/links.h"
#include "test/support/files.h"
#include "test/support/scenario.h"

BOOST_AUTO_TEST_SUITE(linker)

namespace {

using namespace cuguest_test;
using cudasim::Sim;
using cuguest::CodeImage;
using cuguest::PrimaryContext;

static_assert(std::is_nothrow_move_constructible_v<Linker>);

// A file that goes with the object.
class File {
 public:
  explicit File(const CodeImage& image) {
    const int file = mkstemp(path_);
    BOOST_TEST_REQUIRE(file >= 0);
    close(file);
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(image.bytes().data()),
               static_cast<std::streamsize>(image.bytes().size()));
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { unlink(path_); }
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/cuguest-linker-XXXXXX";
};

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_kind_of_input_with_every_other) {
  const Owner owner;
  const Undisturbed undisturbed;
  const std::vector<CodeImage> kernels = {IMAGE(linked_relocatable_ptx),
                                          IMAGE(linked_relocatable_cubin),
                                          IMAGE(linked_relocatable_fatbin), IMAGE(linked_object)};
  const std::vector<CodeImage> parts = {
      IMAGE(linked_part_relocatable_ptx), IMAGE(linked_part_relocatable_cubin),
      IMAGE(linked_part_relocatable_fatbin), IMAGE(linked_part_object), IMAGE(linked_part_archive)};
  for (const CodeImage& kernel : kernels) {
    for (const CodeImage& part : parts) {
      BOOST_TEST_CONTEXT(kernel.name() << " with " << part.name()) {
        BOOST_TEST(Twists(owner, Link(owner.ref(), {kernel, part})));
        BOOST_TEST(Twists(owner, Link(owner.ref(), {part, kernel})));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_result_is_an_image_for_module) {
  const Owner owner;
  Sim::RegisterKernel("twist", &TwistOnHost);
  const Undisturbed undisturbed;
  const CodeImage image = Link(owner.ref(), TwistInputs()).value();
  BOOST_TEST((image.kind() == CodeImage::Kind::kCubin));
  BOOST_TEST(image.kernel_names() == std::vector<std::string>{"twist"});
  BOOST_TEST(image.name() == "linked_relocatable_ptx, linked_part_relocatable_ptx");
  absl::StatusOr<cuguest::Module> module = cuguest::Module::LoadIn(owner.ref(), image);
  BOOST_TEST_REQUIRE(module.ok(), module.status().ToString());
  SUCCEEDS(module->GetKernel("twist").status());
  SUCCEEDS(module->Release());
}

BOOST_AUTO_TEST_CASE(inputs_from_files) {
  const Owner owner;
  const File kernel(IMAGE(linked_object));
  const File part(IMAGE(linked_part_archive));
  Linker linker(owner.ref());
  SUCCEEDS(linker.AddFile(kernel.path()));
  REFUSES(linker.AddFile("/nowhere/part.a"), kNotFound, "/nowhere/part.a");
  REFUSES(linker.Complete().status(), kInvalidArgument, "Twist", kernel.path());
  SUCCEEDS(linker.AddFile(part.path()));
  BOOST_TEST(Twists(owner, linker.Complete()));
}

bool HasDeviceRuntime() { return !FindInToolkit("libcudadevrt.a").empty(); }

// What nvcc makes of a kernel that calls cudaGetDevice().
BOOST_AUTO_TEST_CASE(the_device_runtime, *OnlyIf(&HasDeviceRuntime, "needs libcudadevrt.a")) {
  const Owner owner;
  Linker linker(owner.ref());
  linker.Add(
      PtxWith(".extern .func (.param .b32 result) __cudaCDP2GetDevice(.param .b64 to);\n"
              ".visible .entry ask(.param .u64 to)\n{\n"
              "  .reg .b64 %rd<2>;\n"
              "  .param .b64 argument;\n"
              "  .param .b32 result;\n"
              "  ld.param.u64 %rd1, [to];\n"
              "  st.param.b64 [argument], %rd1;\n"
              "  call.uni (result), __cudaCDP2GetDevice, (argument);\n"
              "  ret;\n}\n",
              "ask.ptx"));
  REFUSES(linker.Complete().status(), kInvalidArgument, "__cudaCDP2GetDevice");
  SUCCEEDS(linker.AddFile(FindInToolkit("libcudadevrt.a")));
  const absl::StatusOr<CodeImage> image = linker.Complete();
  BOOST_TEST_REQUIRE(image.ok(), image.status().ToString());
  const Undisturbed undisturbed;
  absl::StatusOr<cuguest::Module> module = cuguest::Module::LoadIn(owner.ref(), *image);
  SUCCEEDS(module.status());
  SUCCEEDS(module->Release());
}

BOOST_AUTO_TEST_CASE(a_linker_links_again_and_with_more) {
  const Owner owner;
  Linker linker(owner.ref());
  linker.Add(IMAGE(linked_relocatable_cubin));
  REFUSES(linker.Complete().status(), kInvalidArgument, "Twist");
  linker.Add(IMAGE(linked_part_relocatable_cubin));
  BOOST_TEST(Twists(owner, linker.Complete()));
  BOOST_TEST(Twists(owner, linker.Complete()));
  const Linker copy = linker;
  linker.Add(PtxWith(".visible .entry other()\n{\n  ret;\n}\n", "other.ptx"));
  const std::vector<std::string> both = {"other", "twist"};
  BOOST_TEST(linker.Complete().value().kernel_names() == both);
  BOOST_TEST(copy.Complete().value().kernel_names() == std::vector<std::string>{"twist"});
  const Linker moved = std::move(linker);
  REFUSES(linker.Complete().status(), kInvalidArgument, "nothing was added");
  BOOST_TEST(moved.Complete().value().kernel_names() == both);
}

BOOST_AUTO_TEST_CASE(it_links_in_its_context_whatever_is_current) {
  const Owner owner;
  const OwnContext other;
  const Linker linker = LinkerOf(owner.ref(), TwistInputs());
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{owner.get(), other.get()}}) {
    SetStack(stack);
    {
      const Undisturbed undisturbed;
      SUCCEEDS(linker.Complete().status());
    }
    SetStack({});
  }
  BOOST_TEST(Twists(owner, linker.Complete()));
}

// The tests' devices are no sm_75.
BOOST_AUTO_TEST_CASE(for_another_architecture_than_the_contexts) {
  const Owner owner;
  JitOptions options;
  options.target = CU_TARGET_COMPUTE_75;
  const absl::StatusOr<CodeImage> image = Link(owner.ref(), TwistInputs(), options);
  BOOST_TEST_REQUIRE(image.ok(), image.status().ToString());
  BOOST_TEST(image->kernel_names() == std::vector<std::string>{"twist"});
  CUmodule module = nullptr;
  owner.Enter();
  BOOST_CHECK_EQUAL(RAW(cuModuleLoadData)(&module, image->bytes().data()),
                    CUDA_ERROR_NO_BINARY_FOR_GPU);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(the_report_has_the_log_and_the_time) {
  const Owner owner;
  JitOptions options;
  options.verbose = true;
  JitReport report;
  SUCCEEDS(Link(owner.ref(), TwistInputs(), options, &report).status());
  BOOST_TEST(Has(report.info_log, "twist"), report.info_log);
  BOOST_TEST(report.error_log == "");
  BOOST_TEST(report.milliseconds > 0);
  SUCCEEDS(Link(owner.ref(), TwistInputs(), {}, &report).status());
  BOOST_TEST(!Has(report.info_log, "twist"), report.info_log);
  REFUSES(Link(owner.ref(), {IMAGE(linked_object)}, {}, &report).status(), kInvalidArgument,
          "Twist");
  BOOST_TEST(Has(report.error_log, "Twist"), report.error_log);
}

// More than any buffer that it begins with.
BOOST_AUTO_TEST_CASE(a_long_log_is_whole) {
  const Owner owner;
  constexpr int kFunctions = 1000;
  std::string declarations;
  std::string calls;
  for (int i = 0; i < kFunctions; ++i) {
    const std::string name = "a_function_that_is_nowhere_" + std::to_string(i);
    declarations += ".extern .func " + name + "();\n";
    calls += "  call " + name + ", ();\n";
  }
  const CodeImage input =
      PtxWith(declarations + ".visible .entry k()\n{\n" + calls + "  ret;\n}\n", "k.ptx");
  JitReport report;
  const absl::Status status = Link(owner.ref(), {input}, {}, &report).status();
  REFUSES(status, kInvalidArgument, "k.ptx", "nowhere_0'", "nowhere_999'");
  BOOST_TEST(Has(report.error_log, "nowhere_0'"));
  BOOST_TEST(Has(report.error_log, "nowhere_999'"));
}

BOOST_AUTO_TEST_CASE(from_any_thread_and_from_several) {
  const Owner owner;
  const Undisturbed undisturbed;
  const Linker linker = LinkerOf(owner.ref(), TwistInputs());
  absl::StatusOr<CodeImage> images[4];
  std::vector<std::thread> threads;
  for (absl::StatusOr<CodeImage>& image : images) {
    threads.emplace_back([&] { image = linker.Complete(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::StatusOr<CodeImage>& image : images) BOOST_TEST(Twists(owner, image));
}

BOOST_AUTO_TEST_CASE(no_capture_is_invalidated) {
  const Owner owner;
  const OwnContext other;
  const Linker linker = LinkerOf(owner.ref(), TwistInputs());
  const Linker elsewhere = LinkerOf(ContextRef::Borrow(other.get()), TwistInputs());
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(owner.stream(), mode);
    for (const Linker* each : {&linker, &elsewhere}) {
      SUCCEEDS(each->Complete().status());
      std::thread([each] { SUCCEEDS(each->Complete().status()); }).join();
    }
  }
}

BOOST_AUTO_TEST_CASE(a_context_that_ends_first) {
  OwnContext context;
  const Linker linker = LinkerOf(ContextRef::Borrow(context.get()), TwistInputs());
  SetStack({context.get()});  // keeps its memory
  std::thread([dead = context.release()] { OK(RAW(cuCtxDestroy)(dead)); }).join();
  REFUSES(linker.Complete().status(), kFailedPrecondition, "destroyed or reset");
  SetStack({});
  REFUSES(Link(ContextRef(), TwistInputs()).status(), kFailedPrecondition, "no context");
}

BOOST_AUTO_TEST_CASE(a_primary_context_that_was_reset) {
  const auto primary = PrimaryContext::Retain(cuguest::Device::Borrow(0));
  const Linker linker = LinkerOf(primary.context(), TwistInputs());
  SUCCEEDS(linker.Complete().status());
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  REFUSES(linker.Complete().status(), kFailedPrecondition, "destroyed or reset");
}

BOOST_AUTO_TEST_CASE(in_a_green_context,
                     *OnlyIf([] { return FindRawSymbol("cuGreenCtxCreate") != nullptr; },
                             "needs a driver with green contexts")) {
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  OK(RAW(cuGreenCtxCreate)(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  OK(RAW(cuCtxFromGreenCtx)(&context, green));
  {
    const Undisturbed undisturbed;
    SUCCEEDS(Link(ContextRef::Borrow(context), TwistInputs()).status());
  }
  OK(RAW(cuGreenCtxDestroy)(green));
}

BOOST_AUTO_TEST_CASE(not_in_a_callback) {
  const Owner owner;
  struct Asked {
    Linker linker;
    absl::Status status;
  } asked = {LinkerOf(owner.ref(), TwistInputs()), absl::OkStatus()};
  OK(RAW(cuLaunchHostFunc)(
      owner.stream(),
      [](void* data) {
        auto* in = static_cast<Asked*>(data);
        in->status = in->linker.Complete().status();
      },
      &asked));
  OK(RAW(cuStreamSynchronize)(owner.stream()));
  REFUSES(asked.status, kPermissionDenied, "callback");
  SUCCEEDS(asked.linker.Complete().status());
}

CHILD(forks_with_a_linker) {
  CHECK(cuguest::Driver::GetInitialized().ok());
  const ContextRef home = ContextRef::Borrow(MakeContext());
  std::optional<Linker> linker = LinkerOf(home, TwistInputs());
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status status = linker->Complete().status();
    linker.reset();
    _exit(cuguest::CodeOf(status) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int end = 0;
  CHECK(waitpid(child, &end, 0) == child);
  CHECK(WIFEXITED(end) && WEXITSTATUS(end) == 0);
  CHECK(linker->Complete().ok());
  return 0;
}

CHILD(leaves_a_linker_to_the_end_of_the_process) {
  CHECK(cuguest::Driver::GetInitialized().ok());
  static const Linker linker = LinkerOf(ContextRef::Borrow(MakeContext()), TwistInputs());
  CHECK(linker.Complete().ok());
  return 0;
}

BOOST_AUTO_TEST_CASE(across_a_fork) { REQUIRE_CHILD_PASSES("forks_with_a_linker"); }

BOOST_AUTO_TEST_CASE(at_the_end_of_the_process) {
  REQUIRE_CHILD_PASSES("leaves_a_linker_to_the_end_of_the_process");
}

BOOST_AUTO_TEST_CASE(it_costs_what_it_says, *OnlySim()) {
  const Owner owner;
  const Linker linker = LinkerOf(owner.ref(), TwistInputs());
  for (const unsigned switched : {0u, 2u}) {
    SetStack(switched == 0 ? Stack{owner.get()} : Stack{});
    cuguest_test::BeginCount();
    SUCCEEDS(linker.Complete().status());
    BOOST_TEST(CallsOfTheLinker() == 8 + switched);
  }
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
