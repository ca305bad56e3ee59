// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Links: several texts and pieces of machine code to one image. Measured on an NVIDIA H100,
// driver 580.159.04.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>

#include "cudasim/sim.h"
#include "test/capture.h"
#include "test/jit.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(link_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim_test::OnlySim;

namespace {

constexpr char kUnknownImage[] = "error   : Binary format for key='0', ident='' is not recognized";

bool HasKernel(const std::string& cubin, const char* name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  OK(RAW(cuModuleLoadData)(&module, cubin.data()));
  const CUresult code = RAW(cuModuleGetFunction)(&function, module, name);
  OK(RAW(cuModuleUnload)(module));
  return code == CUDA_SUCCESS;
}

// A file that goes with the object.
class OwnFile {
 public:
  explicit OwnFile(const std::string& content)
      : path_("/tmp/cudasim-link-" + std::to_string(getpid())) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~OwnFile() { std::remove(path_.c_str()); }
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(with_a_compiler, *NeedsCompiler())

BOOST_AUTO_TEST_CASE(a_link_needs_a_context_to_begin_only) {
  CUlinkState state = nullptr;
  IS(RAW(cuLinkCreate)(0, nullptr, nullptr, &state), INVALID_CONTEXT);
  const OwnContext other;
  std::string cubin;
  {
    const InContext in;
    IS(RAW(cuLinkCreate)(0, nullptr, nullptr, nullptr), INVALID_VALUE);
    OwnLink link;
    SetStack({other.get()});
    OK(link.Add(kCaller));
    SetStack({});
    OK(link.Add(kCallee));
    OK(link.Complete(&cubin));
    SetStack({in.context.get()});
    BOOST_TEST(HasKernel(cubin, "use"));
    SetStack({});
  }
  OwnContext gone;
  SetStack({gone.get()});
  OwnLink link;
  OK(RAW(cuCtxDestroy)(gone.release()));
  OK(link.Add(kPtx));
  OK(link.Complete());
}

BOOST_AUTO_TEST_CASE(texts_become_one_image) {
  const InContext in;
  std::string cubin;
  OwnLink link;
  OK(link.Add(kCaller, CU_JIT_INPUT_PTX, "caller"));
  OK(link.Add(kCallee, CU_JIT_INPUT_PTX, nullptr));
  OK(link.Complete(&cubin));
  BOOST_TEST(cubin.substr(0, 4) == "\177ELF");
  BOOST_TEST(HasKernel(cubin, "use"));
  BOOST_TEST(link.jit().ErrorSize() == 0u);
}

// What one link made is not relocatable, and cannot be put into another.
BOOST_AUTO_TEST_CASE(an_image_of_a_link_is_no_input) {
  const InContext in;
  std::string cubin;
  OwnLink first;
  OK(first.Add(kPtx));
  OK(first.Complete(&cubin));
  OwnLink second;
  IS(second.Add(cubin, CU_JIT_INPUT_CUBIN), NO_BINARY_FOR_GPU);
  IS(second.Add(kPtx), NO_BINARY_FOR_GPU);  // for good
  IS(second.Complete(), NO_BINARY_FOR_GPU);
  BOOST_TEST(second.jit().Error() == "");
}

BOOST_AUTO_TEST_CASE(a_text_that_cannot_be_compiled_is_left_out) {
  const InContext in;
  std::string cubin;
  OwnLink link;
  IS(link.Add(kMistake), INVALID_PTX);
  BOOST_TEST(Contains(link.jit().Error(), "ptxas application ptx input, line 7; error   : "),
             link.jit().Error());
  const size_t told = link.jit().ErrorSize();
  IS(link.Add(".version 99.0\n.target sm_90\n.address_size 64\n"), UNSUPPORTED_PTX_VERSION);
  BOOST_TEST(link.jit().ErrorSize() > told);
  BOOST_TEST(Contains(link.jit().Error(), "line 7"));  // both of them
  OK(link.Add(kPtx));
  OK(link.Complete(&cubin));
  BOOST_TEST(HasKernel(cubin, "store"));
  BOOST_TEST(!HasKernel(cubin, "wrong"));
}

BOOST_AUTO_TEST_CASE(no_input_makes_an_empty_image) {
  const InContext in;
  std::string cubin;
  OwnLink link;
  OK(link.Complete(&cubin));
  BOOST_TEST(!HasKernel(cubin, "store"));
}

// What the linker itself finds has one code or another, from one process to the next: a
// real driver was seen to answer UNKNOWN, INVALID_SOURCE, and even SUCCESS. The log is
// always there.
BOOST_AUTO_TEST_CASE(what_is_undefined_is_in_the_log_at_the_end) {
  const InContext in;
  OwnLink link;
  OK(link.Add(kCaller, CU_JIT_INPUT_PTX, "the caller"));
  BOOST_TEST(link.jit().Error() == "");
  static_cast<void>(link.Complete());
  BOOST_TEST(link.jit().Error() == "error   : Undefined reference to 'twice' in 'the caller'");
}

BOOST_AUTO_TEST_CASE(what_is_undefined_fails_the_link, *OnlySim()) {
  const InContext in;
  OwnLink link;
  OK(link.Add(kCaller));
  IS(link.Complete(), UNKNOWN);
}

BOOST_AUTO_TEST_CASE(what_is_defined_twice_ends_the_link) {
  const InContext in;
  const auto is_failure = [](CUresult code) {
    return code == CUDA_ERROR_UNKNOWN || code == CUDA_ERROR_INVALID_SOURCE;
  };
  const std::pair<const std::string, const char*> texts[] = {
      {kCallee, "error   : Multiple definition of 'twice' in 'second', first defined in 'first'"},
      {kPtx, "error   : Multiple definition of 'store' in 'second', first defined in 'first'"}};
  for (const auto& text : texts) {
    OwnLink link;
    OK(link.Add(text.first, CU_JIT_INPUT_PTX, "first"));
    BOOST_TEST(is_failure(link.Add(text.first, CU_JIT_INPUT_PTX, "second")));
    BOOST_TEST(Contains(link.jit().Error(), text.second), link.jit().Error());
    BOOST_TEST(is_failure(link.Add(kCaller)));
    BOOST_TEST(is_failure(link.Complete()));
  }
}

BOOST_AUTO_TEST_CASE(inputs_that_are_not_of_their_kind) {
  const InContext in;
  const std::string garbage(64, 'x');
  OwnLink link;
  IS(link.Add(garbage), INVALID_IMAGE);
  BOOST_TEST(link.jit().Error() == kUnknownImage);
  OwnLink container;
  IS(container.Add(garbage, CU_JIT_INPUT_FATBINARY), INVALID_IMAGE);
  BOOST_TEST(container.jit().Error() == kUnknownImage + std::string("\n") + kUnknownImage);
  OwnLink object;
  IS(object.Add(garbage, CU_JIT_INPUT_OBJECT, "thing"), UNKNOWN);
  BOOST_TEST(object.jit().Error() == "fatal   : Could not find fatbin in 'thing'");
  OwnLink library;
  IS(library.Add(garbage, CU_JIT_INPUT_LIBRARY), UNKNOWN);
  BOOST_TEST(library.jit().Error() == "fatal   : unexpected archive format");
  for (OwnLink* usable : {&link, &container, &object, &library}) {
    OK(usable->Add(kPtx));
    OK(usable->Complete());
  }
  OwnLink cubin;
  IS(cubin.Add(garbage, CU_JIT_INPUT_CUBIN), INVALID_IMAGE);
  IS(cubin.Complete(), INVALID_IMAGE);
  BOOST_TEST(cubin.jit().Error() == "");
  OwnLink intermediate;
  IS(intermediate.Add(garbage, CU_JIT_INPUT_NVVM), JIT_COMPILER_NOT_FOUND);
  IS(intermediate.Complete(), JIT_COMPILER_NOT_FOUND);
}

BOOST_AUTO_TEST_CASE(arguments_of_adding) {
  const InContext in;
  OwnLink link;
  char text[] = "text";
  const auto add = [&](CUlinkState state, CUjitInputType type, void* data, size_t size) {
    return RAW(cuLinkAddData)(state, type, data, size, "x", 0, nullptr, nullptr);
  };
  IS(add(nullptr, CU_JIT_INPUT_PTX, text, sizeof(text)), INVALID_HANDLE);
  IS(add(link.get(), CU_JIT_INPUT_PTX, nullptr, 4), INVALID_VALUE);
  IS(add(link.get(), CU_JIT_INPUT_PTX, text, 0), INVALID_VALUE);
  IS(add(link.get(), CU_JIT_NUM_INPUT_TYPES, text, sizeof(text)), INVALID_VALUE);
  IS(add(link.get(), OutOfRange<CUjitInputType>(99), text, sizeof(text)), INVALID_VALUE);
  IS(RAW(cuLinkAddFile)(link.get(), CU_JIT_INPUT_PTX, nullptr, 0, nullptr, nullptr), INVALID_VALUE);
  const auto add_file = [&](const char* path) {
    return RAW(cuLinkAddFile)(link.get(), CU_JIT_INPUT_PTX, path, 0, nullptr, nullptr);
  };
  IS(add_file("/nonexistent/file.ptx"), FILE_NOT_FOUND);
  IS(add_file("/tmp"), OUT_OF_MEMORY);
  const OwnFile empty("");
  IS(add_file(empty.path()), INVALID_IMAGE);
  OK(link.Complete());
}

BOOST_AUTO_TEST_CASE(files_are_added) {
  const InContext in;
  const OwnFile file(kCallee);
  std::string cubin;
  OwnLink link;
  OK(link.Add(kCaller));
  OK(RAW(cuLinkAddFile)(link.get(), CU_JIT_INPUT_PTX, file.path(), 0, nullptr, nullptr));
  OK(link.Complete(&cubin));
  BOOST_TEST(HasKernel(cubin, "use"));
}

BOOST_AUTO_TEST_CASE(a_link_is_completed_once) {
  const InContext in;
  OwnLink link;
  OK(link.Add(kPtx));
  size_t size = 0;
  void* cubin = nullptr;
  IS(RAW(cuLinkComplete)(link.get(), nullptr, &size), INVALID_VALUE);
  IS(RAW(cuLinkComplete)(nullptr, &cubin, &size), INVALID_HANDLE);
  OK(RAW(cuLinkComplete)(link.get(), &cubin, nullptr));
  IS(RAW(cuLinkComplete)(link.get(), &cubin, &size), INVALID_HANDLE);
  IS(link.Add(kCallee), INVALID_VALUE);
  IS(RAW(cuLinkDestroy)(nullptr), INVALID_HANDLE);
}

// So the arrays of options and the logs must live until the last step is done.
BOOST_AUTO_TEST_CASE(every_step_writes_logs_and_time) {
  const InContext in;
  Jit jit({{CU_JIT_LOG_VERBOSE, 1}});
  CUlinkState state = nullptr;
  OK(RAW(cuLinkCreate)(jit.count(), jit.options(), jit.values(), &state));
  BOOST_TEST(jit.InfoSize() == 0u);
  BOOST_TEST(jit.ErrorSize() == 0u);
  float time = jit.Milliseconds();
  std::string text = Unique(kPtx);
  OK(RAW(cuLinkAddData)(state, CU_JIT_INPUT_PTX, &text[0], text.size() + 1, "x", 0, nullptr,
                        nullptr));
  const std::string compiled = jit.Info();
  BOOST_TEST(Contains(compiled, "ptxas info    : Compiling entry function 'store'"), compiled);
  BOOST_TEST(jit.InfoSize() == compiled.size());
  BOOST_TEST(jit.Milliseconds() > time);
  time = jit.Milliseconds();
  void* cubin = nullptr;
  OK(RAW(cuLinkComplete)(state, &cubin, nullptr));
  BOOST_TEST(jit.Info().substr(0, compiled.size()) == compiled);
  BOOST_TEST(Contains(jit.Info(), "info    : Function properties for 'store'"), jit.Info());
  BOOST_TEST(jit.Milliseconds() > time);
  jit.values()[1] = nullptr;
  OK(RAW(cuLinkDestroy)(state));
  BOOST_CHECK(jit.values()[1] == nullptr);
}

BOOST_AUTO_TEST_CASE(options_of_a_link) {
  const InContext in;
  const std::pair<int, size_t> refused[] = {{CU_JIT_MAX_REGISTERS, 0},
                                            {CU_JIT_FALLBACK_STRATEGY, 1},
                                            {CU_JIT_GLOBAL_SYMBOL_COUNT, 1},
                                            {CU_JIT_NUM_OPTIONS, 1},
                                            {99, 1}};
  for (const auto& option : refused) {
    BOOST_TEST_CONTEXT(option.first << " = " << option.second) {
      Jit jit({option});
      CUlinkState state = nullptr;
      IS(RAW(cuLinkCreate)(jit.count(), jit.options(), jit.values(), &state), INVALID_VALUE);
      BOOST_CHECK(state == nullptr);
      BOOST_TEST(jit.IsUntouched());
    }
  }
  std::string cubin;
  OwnLink link({{CU_JIT_TARGET, 80}});
  OK(link.Add(kPtx));
  OK(link.Complete(&cubin));
  CUmodule module = nullptr;
  IS(RAW(cuModuleLoadData)(&module, cubin.data()), NO_BINARY_FOR_GPU);
}

BOOST_AUTO_TEST_CASE(options_of_an_input) {
  const InContext in;
  OwnLink link;
  std::string text = kHead;
  char buffer[64];
  const auto add = [&](CUjit_option option, void* value) {
    return RAW(cuLinkAddData)(link.get(), CU_JIT_INPUT_PTX, &text[0], text.size() + 1, "x", 1,
                              &option, &value);
  };
  for (const CUjit_option option :
       {CU_JIT_WALL_TIME, CU_JIT_TARGET_FROM_CUCONTEXT, CU_JIT_TARGET, CU_JIT_FALLBACK_STRATEGY,
        CU_JIT_LTO, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES}) {
    IS(add(option, Value(90)), INVALID_VALUE);
  }
  IS(add(CU_JIT_ERROR_LOG_BUFFER, buffer), INVALID_VALUE);
  OK(add(CU_JIT_MAX_REGISTERS, Value(32)));
  OK(add(CU_JIT_OPTIMIZATION_LEVEL, Value(0)));
  OK(add(CU_JIT_GENERATE_LINE_INFO, Value(1)));
  OK(link.Complete());
}

BOOST_AUTO_TEST_CASE(links_do_not_disturb_captures) {
  const Guest guest;
  for (const auto mode : kModes) {
    OK(Begin(guest.stream, mode));
    {
      OwnLink link;
      OK(link.Add(kCaller));
      OK(link.Add(kCallee));
      IS(link.Add(kMistake), INVALID_PTX);
      OK(link.Complete());
    }
    BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
    OK(End(guest.stream));
  }
}

BOOST_AUTO_TEST_CASE(link_states_are_counted, *OnlySim()) {
  const InContext in;
  BOOST_TEST(Sim::Live().link_states == 0u);
  {
    const OwnLink link;
    BOOST_TEST(Sim::Live().link_states == 1u);
  }
  BOOST_TEST(Sim::Live().link_states == 0u);
}

// A real driver reads freed memory.
CHILD(destroys_a_link_twice) {
  CUcontext context = cudasim_test::MakeContext();
  CHECK(RAW(cuCtxPushCurrent)(context) == CUDA_SUCCESS);
  CUlinkState state = nullptr;
  CHECK(RAW(cuLinkCreate)(0, nullptr, nullptr, &state) == CUDA_SUCCESS);
  CHECK(RAW(cuLinkDestroy)(state) == CUDA_SUCCESS);
  RAW(cuLinkDestroy)(state);
  return 0;
}
BOOST_AUTO_TEST_CASE(a_destroyed_link_panics, *OnlySim()) {
  const cudasim_test::Ended ended = cudasim_test::RunChild("destroys_a_link_twice");
  BOOST_TEST(ended.code == -SIGABRT);
  BOOST_TEST(Contains(ended.output, "the link state was destroyed"), ended.output);
}

BOOST_AUTO_TEST_SUITE_END()

CHILD(links_without_a_linker) {
  CUcontext context = cudasim_test::MakeContext();
  CHECK(RAW(cuCtxPushCurrent)(context) == CUDA_SUCCESS);
  CUlinkState state = nullptr;
  CHECK(RAW(cuLinkCreate)(0, nullptr, nullptr, &state) == CUDA_SUCCESS);
  std::string text = kPtx;
  CHECK(RAW(cuLinkAddData)(state, CU_JIT_INPUT_PTX, &text[0], text.size() + 1, "x", 0, nullptr,
                           nullptr) == CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
  return 0;
}
BOOST_AUTO_TEST_CASE(without_a_linker_nothing_is_linked, *OnlySim()) {
  const cudasim_test::Ended ended =
      cudasim_test::RunSelf({"--child=links_without_a_linker"}, {"CUDASIM_NVJITLINK="});
  BOOST_TEST(ended.code == 0, ended.output);
  const cudasim_test::Ended misled =
      cudasim_test::RunSelf({"--child=links_without_a_linker"}, {"CUDASIM_NVJITLINK=/none.so"});
  BOOST_TEST(misled.code != 0);
  BOOST_TEST(
      misled.output.find("CUDASIM_NVJITLINK=/none.so: /none.so: cannot open") != std::string::npos,
      misled.output);
}

BOOST_AUTO_TEST_SUITE_END()
