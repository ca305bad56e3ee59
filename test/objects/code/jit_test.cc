// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/jit.h"

#include <sys/stat.h>

#include "test/objects/code/code.h"
#include "test/support/scenario.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(jit)

using namespace module_test;
using cuguest_test::OwnContext;

namespace {

// PTX that no cache has seen.
std::string NewCode(const std::string& name) {
  return "// " + std::to_string(getpid()) + name + kCode;
}

bool Has(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

struct Loaded {
  absl::Status status;
  JitReport report;
};

Loaded Load(const ContextRef& context, const std::string& text, const JitOptions& options) {
  Loaded loaded;
  loaded.status = Module::LoadIn(context, Ptx(text), options, &loaded.report).status();
  return loaded;
}

struct Fixture {
  OwnContext context;
  ContextRef here = Ref(context.get());
};

// PTX with so many mistakes that no first buffer holds what there is to say.
std::string ManyMistakes(int count) {
  std::string text = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry broken()\n{\n";
  for (int i = 0; i < count; ++i) text += "  not.an.instruction %r" + std::to_string(i) + ";\n";
  return text + "  ret;\n}\n";
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_report_has_time_and_log, Fixture) {
  JitOptions options;
  options.verbose = true;
  const Loaded loaded = Load(here, NewCode("verbose"), options);
  DONE(loaded.status);
  BOOST_TEST(loaded.report.milliseconds > 0);
  BOOST_TEST(Has(loaded.report.info_log, "store"), loaded.report.info_log);
  BOOST_TEST(loaded.report.error_log == "");
  BOOST_TEST(loaded.report.threads_per_block == 0U);
}

BOOST_FIXTURE_TEST_CASE(every_option_is_taken, Fixture,
                        *cuguest_test::NeedsDriver(12040, "CU_JIT_OVERRIDE_DIRECTIVE_VALUES")) {
  JitOptions options;
  options.max_registers = 32;
  options.optimization_level = 1;
  options.target = CU_TARGET_COMPUTE_90;
  options.cache_mode = CU_JIT_CACHE_OPTION_CG;
  options.min_blocks_per_multiprocessor = 2;
  options.max_threads_per_block = 128;
  options.split_compile = 0;
  options.loader_threads = 0;
  options.line_info = true;
  options.position_independent = true;
  options.override_directives = true;
  int major = 0;
  RAW(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  if (major != 9) options.target.reset();
  DONE(Load(here, NewCode("options"), options).status);
  JitOptions debug;
  debug.debug_info = true;
  DONE(Load(here, NewCode("debug"), debug).status);
}

struct Since {
  const char* name;
  void (*set)(JitOptions*);
  int version;
};
const Since kSince[] = {
    {"position_independent", [](JitOptions* o) { o->position_independent = true; }, 12000},
    {"min_blocks_per_multiprocessor",
     [](JitOptions* o) { o->min_blocks_per_multiprocessor = o->max_threads_per_block = 64; },
     12030},
    {"max_threads_per_block", [](JitOptions* o) { o->max_threads_per_block = 64; }, 12040},
    {"override_directives", [](JitOptions* o) { o->override_directives = true; }, 12040},
};

// The simulation refuses the option numbers that the <cuda.h> of its version ends before.
BOOST_FIXTURE_TEST_CASE(an_option_newer_than_the_driver_is_named, Fixture) {
  for (const Since& option : kSince) {
    JitOptions options;
    option.set(&options);
    const absl::Status status = Load(here, NewCode("since"), options).status;
    if (cuguest_test::HasDriver(option.version)) {
      BOOST_TEST((status.code() != absl::StatusCode::kUnimplemented), status);
    } else {
      BOOST_TEST((status.code() == absl::StatusCode::kUnimplemented), status);
      BOOST_TEST(Says(status, option.name), status);
    }
  }
}

// It would refuse them, and they change no code.
CHILD(asks_an_older_driver_for_more_threads) {
  Sim::SetDriverVersion(12080);
  JitOptions options;
  options.split_compile = 2;
  options.loader_threads = 2;
  CHECK(Module::Load(Ptx(), options).ok());
  return 0;
}

BOOST_FIXTURE_TEST_CASE(an_older_driver_is_not_asked_for_more_threads, Fixture,
                        *cuguest_test::OnlySim()) {
  REQUIRE_CHILD_PASSES("asks_an_older_driver_for_more_threads");
}

BOOST_FIXTURE_TEST_CASE(room_for_threads_is_reported, Fixture) {
  JitOptions options;
  options.threads_per_block = 256;
  const Loaded loaded = Load(here, NewCode("threads"), options);
  DONE(loaded.status);
  BOOST_TEST(loaded.report.threads_per_block >= 256U);
}

BOOST_FIXTURE_TEST_CASE(a_long_log_is_whole, Fixture) {
  const std::string text = ManyMistakes(400);
  const Loaded loaded = Load(here, text, {});
  BOOST_TEST((CodeOf(loaded.status) == CUDA_ERROR_INVALID_PTX));
  BOOST_TEST(loaded.report.error_log.size() > 8192U);
  BOOST_TEST(Has(loaded.report.error_log, "line 405"), loaded.report.error_log.size());
  BOOST_TEST(Says(loaded.status, "line 405"));
}

BOOST_FIXTURE_TEST_CASE(a_failure_leaves_no_report_of_before, Fixture) {
  JitReport report;
  report.info_log = "before";
  BOOST_TEST(!Module::LoadIn(ContextRef(), Ptx(), {}, &report).ok());
  BOOST_TEST(report.info_log == "");
}

BOOST_AUTO_TEST_SUITE_END()
