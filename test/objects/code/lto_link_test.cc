// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LTO IR, which the driver's linker does not take: by nvJitLink, where there is one.

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "test/objects/code/links.h"
#include "test/support/advised.h"
#include "test/support/scenario.h"

BOOST_AUTO_TEST_SUITE(
    lto_link, *cuguest_test::NeedsDriver(CUDA_VERSION / 1000 * 1000,
                                         "an older one is given the nvJitLink of its own version"))

// Of nvJitLink itself, where it refuses an option: it leaks, and it leaves a mutex locked.
// Nobody but a sanitizer calls these.
extern "C" const char* __lsan_default_suppressions() { return "leak:libnvJitLink\n"; }
extern "C" const char* __tsan_default_suppressions() {
  return "deadlock:libnvJitLink\nmutex:libnvJitLink\n";
}

namespace {

using namespace cuguest_test;
using cudasim::Sim;

// The file that a library is loaded from; empty if it cannot be.
std::string FileOf(const char* soname) {
  void* const library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
  link_map* map = nullptr;
  if (library == nullptr || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return "";
  return map->l_name;
}

bool HasNvJitLink() { return !FileOf("libnvJitLink.so.13").empty(); }

std::vector<CodeImage> LtoInputs() { return {IMAGE(linked_lto_ir), IMAGE(linked_part_lto_ir)}; }

// A directory before all others that libraries are looked for in.
class Libraries {
 public:
  Libraries() { BOOST_TEST_REQUIRE(mkdtemp(directory_) != nullptr); }
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;
  ~Libraries() {
    for (const char* name : {kNewer, kOlder}) unlink(Path(name).c_str());
    rmdir(directory_);
  }

  void AddBroken(const char* name) const { std::ofstream(Path(name)) << "no library"; }
  void AddLink(const char* name, const std::string& to) const {
    BOOST_TEST(symlink(to.c_str(), Path(name).c_str()) == 0);
  }

  Ended Run(const char* child) const {
    const char* const others = getenv("LD_LIBRARY_PATH");
    const std::string path =
        std::string("LD_LIBRARY_PATH=") + directory_ + ":" + (others != nullptr ? others : "");
    return RunSelf({std::string("--child=") + child}, {path});
  }

  static constexpr char kNewer[] = "libnvJitLink.so.13";
  static constexpr char kOlder[] = "libnvJitLink.so.12";

 private:
  std::string Path(const char* name) const { return std::string(directory_) + "/" + name; }

  char directory_[32] = "/tmp/cuguest-lto-XXXXXX";
};

#define REQUIRE_PASSES(ended) BOOST_TEST((ended).code == 0, (ended).output)

absl::StatusOr<CodeImage> LinkInAChild() {
  CHECK(cuguest::Driver::GetInitialized().ok());
  return Link(ContextRef::Borrow(MakeContext()), LtoInputs());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(with_nvjitlink,
                      *OnlyIf(&HasNvJitLink, "needs libnvJitLink.so.13 of the CUDA Toolkit"))

BOOST_AUTO_TEST_CASE(lto_ir_with_every_kind) {
  const Owner owner;
  const Undisturbed undisturbed;
  for (const CodeImage& kernel : {IMAGE(linked_lto_ir), IMAGE(linked_lto_fatbin)}) {
    for (const CodeImage& part :
         {IMAGE(linked_part_lto_ir), IMAGE(linked_part_lto_fatbin),
          IMAGE(linked_part_relocatable_ptx), IMAGE(linked_part_relocatable_cubin),
          IMAGE(linked_part_relocatable_fatbin), IMAGE(linked_part_object),
          IMAGE(linked_part_archive)}) {
      BOOST_TEST_CONTEXT(kernel.name() << " with " << part.name()) {
        BOOST_TEST(Twists(owner, Link(owner.ref(), {kernel, part})));
      }
    }
  }
  BOOST_TEST(
      Twists(owner, Link(owner.ref(), {IMAGE(linked_relocatable_ptx), IMAGE(linked_part_lto_ir)})));
}

BOOST_AUTO_TEST_CASE(an_input_that_is_malformed_is_named) {
  const Owner owner;
  const Undisturbed undisturbed;
  const CodeImage broken = PtxWith(".func broken()\n{\n  add.s32 %r1;\n}\n", "broken.ptx");
  JitReport report;
  REFUSES(Link(owner.ref(), {IMAGE(linked_lto_ir), broken}, {}, &report).status(), kInvalidArgument,
          "input 2 of 2, broken.ptx", "NVJITLINK_ERROR_PTX_COMPILE", "line 6",
          "libnvJitLink.so.13 (CUDA 13.");
  BOOST_TEST(report.error_log.find("line 6") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(symbols_that_are_nowhere_or_twice_are_named) {
  const Owner owner;
  REFUSES(Link(owner.ref(), {IMAGE(linked_lto_ir)}).status(), kInvalidArgument, "linked_lto_ir",
          "Twist");
  REFUSES(Link(owner.ref(),
               {IMAGE(linked_lto_ir), IMAGE(linked_part_lto_ir), IMAGE(linked_part_lto_fatbin)})
              .status(),
          kInvalidArgument, "Twist", "multiply defined");
}

// nvJitLink would print it and go on, or crash.
BOOST_AUTO_TEST_CASE(a_symbol_that_is_there_twice_in_machine_code_is_named) {
  const Owner owner;
  const Undisturbed undisturbed;
  SUCCEEDS(Link(owner.ref(), LtoInputs()).status());
  REFUSES(Link(owner.ref(), {IMAGE(linked_lto_ir), IMAGE(linked_part_relocatable_ptx),
                             IMAGE(linked_part_relocatable_cubin)})
              .status(),
          kInvalidArgument, "input 3 of 3, linked_part_relocatable_cubin", "Multiple definition",
          "Twist", "linked_part_relocatable_ptx");
  const CodeImage other = PtxWith(".visible .entry other()\n{\n  ret;\n}\n", "other.ptx");
  BOOST_TEST(Twists(
      owner, Link(owner.ref(), {IMAGE(linked_lto_ir), IMAGE(linked_part_relocatable_ptx), other})));
}

BOOST_AUTO_TEST_CASE(code_for_another_architecture) {
  const Owner owner;
  REFUSES(Link(owner.ref(), {IMAGE(linked_lto_ir), IMAGE(linked_part_oldest_relocatable_cubin)})
              .status(),
          kInvalidArgument, "input 2 of 2", "NVJITLINK_ERROR");
  JitOptions unknown;
  unknown.target = static_cast<CUjit_target>(12);
  REFUSES(Link(owner.ref(), LtoInputs(), unknown).status(), kUnimplemented,
          "NVJITLINK_ERROR_UNSUPPORTED_ARCH", "compute_12");
}

BOOST_AUTO_TEST_CASE(every_option_is_one_that_it_knows) {
  const Owner owner;
  for (unsigned level = 0; level <= 4; ++level) {
    JitOptions options;
    options.optimization_level = level;
    BOOST_TEST(Twists(owner, Link(owner.ref(), LtoInputs(), options)));
  }
  JitOptions all;
  all.max_registers = 64;
  all.cache_mode = CU_JIT_CACHE_OPTION_CG;
  all.min_blocks_per_multiprocessor = 2;
  all.max_threads_per_block = 128;
  all.split_compile = 0;
  all.loader_threads = 0;
  all.debug_info = true;
  all.line_info = true;
  all.verbose = true;
  all.position_independent = true;
  all.override_directives = true;
  all.target = CU_TARGET_COMPUTE_90;
  JitReport report;
  SUCCEEDS(Link(owner.ref(), LtoInputs(), all, &report).status());
  // nvJitLink has a cache too, and of what comes from there it says nothing.
  const bool told = report.info_log.find("twist") != std::string::npos;
  BOOST_TEST((told || report.info_log.empty()), report.info_log);
  BOOST_TEST(report.milliseconds > 0);
}

BOOST_AUTO_TEST_CASE(an_option_that_it_lacks) {
  const Owner owner;
  JitOptions options;
  options.threads_per_block = 64;
  REFUSES(Link(owner.ref(), LtoInputs(), options).status(), kUnimplemented, "threads_per_block",
          Advised("set max_registers instead"));
  options.threads_per_block.reset();
  options.max_registers = 64;
  SUCCEEDS(Link(owner.ref(), LtoInputs(), options).status());
}

BOOST_AUTO_TEST_CASE(for_an_architecture_with_features_of_its_own) {
  const Owner owner;
  JitOptions options;
  options.target = CU_TARGET_COMPUTE_90A;
  SUCCEEDS(Link(owner.ref(), LtoInputs(), options).status());
  options.target = CU_TARGET_COMPUTE_100F;
  SUCCEEDS(Link(owner.ref(), LtoInputs(), options).status());
}

BOOST_AUTO_TEST_CASE(from_several_threads_and_while_something_captures) {
  const Owner owner;
  const Linker linker = LinkerOf(owner.ref(), LtoInputs());
  absl::StatusOr<CodeImage> images[3];
  {
    const Capture capture(owner.stream(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    std::vector<std::thread> threads;
    for (absl::StatusOr<CodeImage>& image : images) {
      threads.emplace_back([&] { image = linker.Complete(); });
    }
    for (std::thread& thread : threads) thread.join();
    SUCCEEDS(linker.Complete().status());
  }
  for (const absl::StatusOr<CodeImage>& image : images) BOOST_TEST(Twists(owner, image));
}

BOOST_AUTO_TEST_CASE(it_costs_what_it_says, *OnlySim()) {
  const Owner owner;
  const Linker linker = LinkerOf(owner.ref(), LtoInputs());
  for (const unsigned switched : {0u, 2u}) {
    SetStack(switched == 0 ? Stack{owner.get()} : Stack{});
    cuguest_test::BeginCount();
    SUCCEEDS(linker.Complete().status());
    BOOST_TEST(CallsOfTheLinker() == 6 + switched);
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(every_driver_call_fails_once, *OnlySim()) {
  const Owner owner;
  const Linker linker = LinkerOf(owner.ref(), LtoInputs());
  FailEachCall({"cuCtxGetId", "cuCtxPushCurrent", "cuCtxGetDevice", "cuDeviceGetAttribute"},
               [&] { return linker.Complete(); });
  const CodeImage other = PtxWith(".visible .entry other()\n{\n  ret;\n}\n", "other.ptx");
  const Linker mixed =
      LinkerOf(owner.ref(), {IMAGE(linked_lto_ir), IMAGE(linked_part_relocatable_ptx), other});
  FailEachCall({"cuLinkCreate"}, [&] { return mixed.Complete(); });
}

CHILD(links_by_the_older_one) {
  CHECK(LinkInAChild().ok());
  return 0;
}

// Of the driver's major version or an older one. Here it is the same file.
BOOST_AUTO_TEST_CASE(an_older_library_if_the_drivers_own_is_broken) {
  const Libraries libraries;
  libraries.AddBroken(Libraries::kNewer);
  libraries.AddLink(Libraries::kOlder, FileOf(Libraries::kNewer));
  REQUIRE_PASSES(libraries.Run("links_by_the_older_one"));
}

BOOST_AUTO_TEST_SUITE_END()

CHILD(finds_no_library) {
  CHECK(NoRefusal(LinkInAChild().status(), absl::StatusCode::kUnavailable,
                  {"load nvJitLink", "libnvJitLink.so.13", "libnvJitLink.so.12", "file too short",
                   "LD_LIBRARY_PATH"}) == "");
  return 0;
}

BOOST_AUTO_TEST_CASE(without_a_library) {
  const Libraries libraries;
  libraries.AddBroken(Libraries::kNewer);
  libraries.AddBroken(Libraries::kOlder);
  REQUIRE_PASSES(libraries.Run("finds_no_library"));
}

CHILD(finds_an_ancient_library) {
  CHECK(NoRefusal(LinkInAChild().status(), absl::StatusCode::kUnimplemented,
                  {"libnvJitLink.so.13 has no nvJitLinkCreate", "older than CUDA 12.3"}) == "");
  return 0;
}

// Another library does for one without the entries.
BOOST_AUTO_TEST_CASE(a_library_that_is_too_old) {
  const Libraries libraries;
  libraries.AddLink(Libraries::kNewer, FileOf("libm.so.6"));
  libraries.AddBroken(Libraries::kOlder);
  REQUIRE_PASSES(libraries.Run("finds_an_ancient_library"));
}

BOOST_AUTO_TEST_SUITE_END()
