// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX that is loaded: what the compiler says of it, when, and where. Measured on an NVIDIA
// H100, driver 580.159.04.

#include <algorithm>
#include <csignal>
#include <string>

#include "cudasim/sim.h"
#include "test/jit.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(jit_facts)

using namespace cudasim_facts;
using cudasim_test::OnlySim;

namespace {

constexpr char kUnknownImage[] = "Binary format for key='0', ident='' is not recognized";

struct Bad {
  const char* what;
  std::string image;
  CUresult code;
  const char* said;  // in the error log
};

std::vector<Bad> BadImages() {
  const std::string body = ".visible .entry nothing() { ret; }\n";
  return {
      {"mistake", kMistake, CUDA_ERROR_INVALID_PTX, "Not a name of any known instruction"},
      {"undefined", kCaller, CUDA_ERROR_INVALID_PTX, "Unresolved extern function 'twice'"},
      {"no brace", kHead + ".visible .entry nothing() { ret;\n", CUDA_ERROR_INVALID_PTX,
       "Parsing error"},
      {"bytes behind it", kPtx + std::string("\x01 more"), CUDA_ERROR_INVALID_PTX, "Parsing error"},
      {"no target", ".version 7.0\n" + body, CUDA_ERROR_INVALID_PTX, "Missing .target"},
      {"unknown target", ".version 7.0\n.target sm_42\n" + body, CUDA_ERROR_INVALID_PTX,
       "Unsupported .target 'sm_42'"},
      {"newer target", ".version 9.0\n.target sm_120\n.address_size 64\n" + body,
       CUDA_ERROR_INVALID_PTX, "is higher than"},
      {"32 bits", ".version 7.0\n.target sm_50\n.address_size 32\n" + body, CUDA_ERROR_INVALID_PTX,
       "32-Bit ABI"},
      {"newer version", ".version 99.0\n.target sm_90\n.address_size 64\n" + body,
       CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "Unsupported .version 99.0"},
      {"version 0.5", ".version 0.5\n.target sm_50\n" + body, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
       "Unsupported .version 0.5"},
      {"no version", ".target sm_50\n" + body, CUDA_ERROR_INVALID_IMAGE, kUnknownImage},
      {"no text", "", CUDA_ERROR_INVALID_IMAGE, kUnknownImage},
      {"garbage", std::string(64, 'x'), CUDA_ERROR_INVALID_IMAGE, kUnknownImage},
  };
}

// A cubin for sm_80.
std::string ForAnotherDevice() {
  std::string cubin;
  OwnLink link({{CU_JIT_TARGET, 80}});
  OK(link.Add(kPtx));
  OK(link.Complete(&cubin));
  return cubin;
}

CUresult LoadWith(std::vector<std::pair<int, size_t>> options, Jit* jit) {
  *jit = Jit(std::move(options));
  CUmodule module = nullptr;
  const CUresult code = jit->LoadModule(&module, Unique(kPtx).c_str());
  if (code == CUDA_SUCCESS) OK(RAW(cuModuleUnload)(module));
  return code;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(with_a_compiler, *NeedsCompiler())

BOOST_AUTO_TEST_CASE(bad_images_and_what_the_log_says) {
  const InContext in;
  for (const Bad& bad : BadImages()) {
    BOOST_TEST_CONTEXT(bad.what) {
      CUmodule module = nullptr;
      Jit jit;
      BOOST_CHECK_EQUAL(jit.LoadModule(&module, bad.image.c_str()), bad.code);
      BOOST_CHECK(module == nullptr);
      BOOST_TEST(Contains(jit.Error(), bad.said), jit.Error());
      BOOST_TEST(jit.ErrorSize() == jit.Error().size());
      BOOST_TEST(jit.Error().back() != '\n');
    }
  }
}

// What the compiler finds when it is through with the text.
BOOST_AUTO_TEST_CASE(what_no_device_has_room_for_is_an_error, *OnlySim()) {
  const InContext in;
  CUmodule module = nullptr;
  Jit jit;
  const std::string text =
      kHead +
      ".visible .entry nothing(.param .u64 to) {\n  .shared .b8 room[300000];\n"
      "  .reg .u64 %r;\n  mov.u64 %r, room;\n  st.shared.u64 [%r], %r;\n"
      "  ret;\n}\n";
  IS(jit.LoadModule(&module, text.c_str()), INVALID_PTX);
  BOOST_TEST(Contains(jit.Error(), "uses too much shared data"), jit.Error());
}

// What a real driver cuts off the end of a library's log at most: more, the more devices there are
// (one character with two H200, two with four). Each one's compiler seems to have the room that the
// one before it took. The simulation, which compiles once, has the whole.
static size_t CutOff() {
  int devices = 0;
  OK(RAW(cuDeviceGetCount)(&devices));
  return cudasim::Sim::IsActive() ? 0 : static_cast<size_t>(devices) - 1;
}

// It is compiled when it is loaded, with a context or without; its code is kept back.
BOOST_AUTO_TEST_CASE(a_library_says_its_log_at_once_and_its_code_later) {
  const OwnContext context;
  for (const bool with_context : {true, false}) {
    for (const Bad& bad : BadImages()) {
      BOOST_TEST_CONTEXT(bad.what << ", context: " << with_context) {
        if (with_context) SetStack({context.get()});
        CUlibrary library = nullptr;
        CUkernel kernel = nullptr;
        CUmodule module = nullptr;
        unsigned count = 77;
        Jit jit;
        OK(jit.LoadLibrary(&library, bad.image.c_str()));
        const std::string said = bad.said;
        BOOST_TEST(Contains(jit.Error(), said.substr(0, said.size() - CutOff()).c_str()),
                   jit.Error());
        jit = Jit();
        BOOST_CHECK_EQUAL(RAW(cuLibraryGetKernel)(&kernel, library, "nothing"), bad.code);
        OK(RAW(cuLibraryGetKernelCount)(&count, library));
        BOOST_TEST(count == 0u);
        SetStack({context.get()});
        BOOST_CHECK_EQUAL(RAW(cuLibraryGetModule)(&module, library), bad.code);
        BOOST_TEST(jit.IsUntouched());
        OK(RAW(cuLibraryUnload)(library));
        SetStack({});
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_surrounds_a_text_does_not_matter) {
  const InContext in;
  for (const char* before : {"// words\n\n  ", "/* words */", "\n\n"}) {
    CUmodule module = nullptr;
    OK(Jit().LoadModule(&module, (before + std::string(kPtx)).c_str()));
    OK(RAW(cuModuleUnload)(module));
  }
  CUmodule module = nullptr;  // without kernels
  OK(Jit().LoadModule(&module, (kHead + ".visible .global .u32 number;\n").c_str()));
  OK(RAW(cuModuleUnload)(module));
}

BOOST_AUTO_TEST_CASE(a_log_is_cut_to_its_buffer) {
  const InContext in;
  CUmodule module = nullptr;
  Jit whole;
  IS(whole.LoadModule(&module, kMistake.c_str()), INVALID_PTX);
  const std::string text = whole.Error();
  for (const size_t size : {size_t{2}, size_t{10}, size_t{100}, text.size(), text.size() + 1}) {
    BOOST_TEST_CONTEXT("size " << size) {
      Jit jit({}, size);
      IS(jit.LoadModule(&module, kMistake.c_str()), INVALID_PTX);
      BOOST_TEST(jit.Error() == text.substr(0, size - 1));
      BOOST_TEST(jit.ErrorSize() == std::min(size, text.size()));
      BOOST_TEST(jit.ErrorByte(size) == '#');
    }
  }
  for (const size_t size : {0, 1}) {
    Jit jit({}, size);
    IS(jit.LoadModule(&module, kMistake.c_str()), INVALID_PTX);
    BOOST_TEST(jit.ErrorByte(0) == '\0');  // of no bytes, too
    BOOST_TEST(jit.ErrorSize() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_success_is_silent_unless_asked) {
  const InContext in;
  Jit jit;
  OK(LoadWith({}, &jit));
  BOOST_TEST(jit.Info() == "");
  BOOST_TEST(jit.InfoSize() == 0u);
  BOOST_TEST(jit.ErrorSize() == 0u);
  BOOST_TEST(jit.Milliseconds() > 0);
  OK(LoadWith({{CU_JIT_LOG_VERBOSE, 1}}, &jit));
  BOOST_TEST(Contains(jit.Info(), "Compiling entry function 'store' for 'sm_90"), jit.Info());
  BOOST_TEST(Contains(jit.Info(), "registers"), jit.Info());
  BOOST_TEST(jit.InfoSize() == jit.Info().size());
  OK(LoadWith({{CU_JIT_MAX_REGISTERS, 1}}, &jit));
  BOOST_TEST(Contains(jit.Info(), "warning"), jit.Info());
}

BOOST_AUTO_TEST_CASE(what_is_cached_takes_no_time_and_says_nothing) {
  const InContext in;
  const std::string text = Unique(kPtx);
  CUmodule module = nullptr;
  Jit first({{CU_JIT_LOG_VERBOSE, 1}});
  OK(first.LoadModule(&module, text.c_str()));
  OK(RAW(cuModuleUnload)(module));
  Jit second({{CU_JIT_LOG_VERBOSE, 1}});
  OK(second.LoadModule(&module, text.c_str()));
  OK(RAW(cuModuleUnload)(module));
  BOOST_TEST(first.InfoSize() > 0u);
  BOOST_TEST(second.InfoSize() == 0u);
  BOOST_TEST(second.Milliseconds() == 0);
  for (int i = 0; i < 2; ++i) {  // a failure is not
    Jit jit;
    IS(jit.LoadModule(&module, kMistake.c_str()), INVALID_PTX);
    BOOST_TEST(jit.Milliseconds() > 0);
    BOOST_TEST(jit.ErrorSize() > 0u);
  }
}

// A value has eight bytes.
BOOST_AUTO_TEST_CASE(the_time_is_a_float_in_the_first_bytes_of_its_value) {
  const InContext in;
  Jit jit;
  OK(LoadWith({}, &jit));
  const auto value = reinterpret_cast<std::uintptr_t>(jit.values()[4]);
  BOOST_TEST((value >> 32) == (Jit::kUntouchedTime >> 32));
}

BOOST_AUTO_TEST_CASE(options_that_are_refused) {
  const InContext in;
  const std::vector<std::vector<std::pair<int, size_t>>> refused = {
      {{CU_JIT_MAX_REGISTERS, 0}},
      {{CU_JIT_TARGET, 10}},
      {{CU_JIT_TARGET, 999}},
      {{CU_JIT_TARGET, 90}, {CU_JIT_THREADS_PER_BLOCK, 32}},
      {{CU_JIT_CACHE_MODE, 3}},
      {{CU_JIT_GLOBAL_SYMBOL_COUNT, 1}},
      {{CU_JIT_NUM_OPTIONS, 1}},
      {{CU_JIT_NUM_OPTIONS + 1, 0}},
      {{99, 1}},
      {{-1, 1}},
  };
  for (const auto& options : refused) {
    BOOST_TEST_CONTEXT(options[0].first << " = " << options[0].second) {
      Jit jit;
      IS(LoadWith(options, &jit), INVALID_VALUE);
      BOOST_TEST(jit.IsUntouched());
      CUlibrary library = nullptr;
      Jit other(options);
      IS(other.LoadLibrary(&library, kPtx), INVALID_VALUE);
      BOOST_TEST(other.IsUntouched());
    }
  }
}

BOOST_AUTO_TEST_CASE(options_that_are_taken) {
  const InContext in;
  std::vector<std::pair<int, size_t>> taken = {{CU_JIT_MAX_REGISTERS, 32},
                                               {CU_JIT_MAX_REGISTERS, 100000},
                                               {CU_JIT_OPTIMIZATION_LEVEL, 0},
                                               {CU_JIT_OPTIMIZATION_LEVEL, 4},
                                               {CU_JIT_OPTIMIZATION_LEVEL, 77},
                                               {CU_JIT_TARGET_FROM_CUCONTEXT, 0},
                                               {CU_JIT_TARGET, 90},
                                               {CU_JIT_TARGET, CU_TARGET_COMPUTE_90A},
                                               {CU_JIT_FALLBACK_STRATEGY, 1},
                                               {CU_JIT_GENERATE_DEBUG_INFO, 1},
                                               {CU_JIT_GENERATE_LINE_INFO, 1},
                                               {CU_JIT_CACHE_MODE, CU_JIT_CACHE_OPTION_NONE},
                                               {CU_JIT_CACHE_MODE, 1},
                                               {CU_JIT_CACHE_MODE, CU_JIT_CACHE_OPTION_CA},
                                               {CU_JIT_MAX_THREADS_PER_BLOCK, 256}};
  for (int option = CU_JIT_POSITION_INDEPENDENT_CODE; option < CU_JIT_NUM_OPTIONS; ++option) {
    taken.push_back({option, 0});
    taken.push_back({option, 1});
  }
  for (const auto& option : taken) {
    BOOST_TEST_CONTEXT(option.first << " = " << option.second) {
      Jit jit;
      OK(LoadWith({option}, &jit));
      BOOST_TEST(jit.Answer(0) == option.second);
    }
  }
  Jit jit;
  IS(LoadWith({{CU_JIT_GENERATE_DEBUG_INFO, 1}, {CU_JIT_OPTIMIZATION_LEVEL, 4}}, &jit),
     INVALID_PTX);
  BOOST_TEST(jit.Error() == "ptxas fatal   : Optimized debugging not supported");
}

BOOST_AUTO_TEST_CASE(a_log_needs_a_buffer_and_a_size) {
  const InContext in;
  char buffer[64] = "before";
  CUmodule module = nullptr;
  CUjit_option option = CU_JIT_ERROR_LOG_BUFFER;
  void* value = buffer;
  const auto load = [&] {
    return RAW(cuModuleLoadDataEx)(&module, kMistake.c_str(), 1, &option, &value);
  };
  IS(load(), INVALID_VALUE);
  option = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
  value = Value(sizeof(buffer));
  IS(load(), INVALID_VALUE);
  BOOST_TEST(buffer == std::string("before"));
  BOOST_CHECK(value == Value(sizeof(buffer)));
  CUjit_option both[] = {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER};
  void* values[] = {Value(sizeof(buffer)), nullptr};
  IS(RAW(cuModuleLoadDataEx)(&module, kMistake.c_str(), 2, both, values), INVALID_VALUE);
  values[1] = buffer;  // in whichever order
  IS(RAW(cuModuleLoadDataEx)(&module, kMistake.c_str(), 2, both, values), INVALID_PTX);
  BOOST_TEST(Contains(buffer, "ptxas"));
  IS(RAW(cuModuleLoadDataEx)(&module, kPtx, 1, nullptr, values), INVALID_VALUE);
  IS(RAW(cuModuleLoadDataEx)(&module, kPtx, 1, both, nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(threads_per_block_are_answered) {
  const InContext in;
  const std::pair<size_t, size_t> answers[] = {
      {1, 32}, {32, 32}, {33, 64}, {1024, 1024}, {2048, 1024}};
  Jit jit;
  for (const auto& answer : answers) {
    OK(LoadWith({{CU_JIT_THREADS_PER_BLOCK, answer.first}}, &jit));
    BOOST_TEST(jit.Answer(0) == answer.second);
  }
  OK(LoadWith({{CU_JIT_THREADS_PER_BLOCK, 33}, {CU_JIT_MAX_REGISTERS, 32}}, &jit));
  BOOST_TEST(jit.Answer(0) == 64u);
}

// A real driver divides by it.
CHILD(asks_for_no_threads) {
  cudasim_test::MakeContext();
  Jit jit({{CU_JIT_THREADS_PER_BLOCK, 0}});
  CUlibrary library = nullptr;
  jit.LoadLibrary(&library, kPtx);
  return 0;
}
BOOST_AUTO_TEST_CASE(no_threads_per_block_panic, *OnlySim()) {
  const cudasim_test::Ended ended = cudasim_test::RunChild("asks_for_no_threads");
  BOOST_TEST(ended.code == -SIGABRT);
  BOOST_TEST(Contains(ended.output, "CU_JIT_THREADS_PER_BLOCK is 0"), ended.output);
}

CHILD(may_not_compile) {
  cudasim_test::MakeContext();
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CHECK(Jit().LoadLibrary(&library, Unique(kPtx).c_str()) == CUDA_SUCCESS);
  CHECK(RAW(cuLibraryGetKernel)(&kernel, library, "store") == CUDA_ERROR_JIT_COMPILATION_DISABLED);
  return 0;
}
BOOST_AUTO_TEST_CASE(the_environment_disables_the_compiler) {
  for (const char* variable : {"CUDA_DISABLE_JIT=1", "CUDA_DISABLE_PTX_JIT=1"}) {
    const cudasim_test::Ended ended =
        cudasim_test::RunSelf({"--child=may_not_compile"}, {variable});
    BOOST_TEST(ended.code == 0, variable << ": " << ended.output);
  }
}

BOOST_AUTO_TEST_CASE(code_for_another_device) {
  const InContext in;
  const std::string cubin = ForAnotherDevice();
  CUmodule module = nullptr;
  Jit jit;
  IS(jit.LoadModule(&module, cubin.data()), NO_BINARY_FOR_GPU);
  BOOST_TEST(jit.Error() == "");
  BOOST_TEST(jit.Milliseconds() == 0);
  IS(LoadWith({{CU_JIT_TARGET, 80}}, &jit), INVALID_SOURCE);
  BOOST_TEST(jit.Error() == "");
  IS(LoadWith({{CU_JIT_TARGET, 0}}, &jit), INVALID_IMAGE);
  BOOST_TEST(jit.Error() == "");
}

// It may be for a device that is not the current context's.
BOOST_AUTO_TEST_CASE(a_library_for_another_device_has_kernels) {
  const InContext in;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  OK(Jit({{CU_JIT_TARGET, 80}}).LoadLibrary(&library, Unique(kPtx).c_str()));
  OK(RAW(cuLibraryGetKernel)(&kernel, library, "nothing"));
  IS(RAW(cuLibraryGetModule)(&module, library), INVALID_SOURCE);
  IS(RAW(cuKernelGetFunction)(&function, kernel), INVALID_SOURCE);
  OK(RAW(cuLibraryUnload)(library));
}

BOOST_AUTO_TEST_SUITE_END()

// Then the simulation's own reader decides.
CHILD(has_no_compiler) {
  cudasim_test::MakeContext();
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  Jit jit;
  CHECK(jit.LoadLibrary(&library, kPtx) == CUDA_SUCCESS);
  CHECK(Contains(jit.Info(), "there is no libnvJitLink.so"));
  CHECK(RAW(cuLibraryGetKernel)(&kernel, library, "store") == CUDA_SUCCESS);
  CHECK(Jit().LoadLibrary(&library, ".version 99.0\n.target sm_90\n") == CUDA_SUCCESS);
  CHECK(RAW(cuLibraryGetKernel)(&kernel, library, "store") == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  return 0;
}
BOOST_AUTO_TEST_CASE(without_a_compiler_texts_are_read, *OnlySim()) {
  const cudasim_test::Ended ended =
      cudasim_test::RunSelf({"--child=has_no_compiler"}, {"CUDASIM_NVJITLINK="});
  BOOST_TEST(ended.code == 0, ended.output);
}

BOOST_AUTO_TEST_SUITE_END()
