// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is a disturbance and what is none, by events in short notation (scenario.h): a thread's
// stack. "third" and "fourth" disturb, "host" and "guest" are disturbed.

#include "audit/analysis.h"

#include <string>

#include "test/scenario.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(audit_analysis_stack)

namespace {

using cuguest_test::FindingsIn;
using cuguest_test::kHost;
using cuguest_test::LogOf;
using cuguest_test::Replayed;

}  // namespace

BOOST_AUTO_TEST_CASE(leaked_push) {
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | third host
check 2>2 | host
)") == "leaked-push cuCtxPushCurrent third>host");
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | third host
cuCtxPushCurrent 2>3 context=3 | third:2 host
check 3>3 | host
)") == "leaked-push cuCtxPushCurrent third>host; leaked-push cuCtxPushCurrent third:2>host");
}

// Whether the guest is known to mind before or only later.
BOOST_AUTO_TEST_CASE(one_fault_has_one_victim) {
  const std::string push = R"(
cuCtxPushCurrent 1>2 context=2 | third guest host
check 2>2 | guest host
)";
  const std::string pop = R"(
cuCtxPopCurrent 1>0 | third guest host
check 0>0 | guest host
)";
  const auto pair = [](const std::string& current) {
    return "cuCtxPushCurrent " + current + ">3 context=3 | guest host\ncuCtxPopCurrent 3>" +
           current + " | guest host\n";
  };
  const auto back = [](const std::string& current) {
    return "check " + current + ">" + current + " | host\n";
  };
  BOOST_TEST(FindingsIn(kHost + push + back("2")) == "leaked-push cuCtxPushCurrent third>host");
  BOOST_TEST(FindingsIn(kHost + pop + back("0")) == "extra-pop cuCtxPopCurrent third>host");
  for (const std::string& scenario : {pair("1") + push + back("2"), push + pair("2") + back("2"),
                                      push + back("2") + pair("2") + back("2")}) {
    BOOST_TEST(FindingsIn(kHost + scenario) == "leaked-push cuCtxPushCurrent third>guest");
  }
  for (const std::string& scenario : {pair("1") + pop + back("0"), pop + pair("0") + back("0"),
                                      pop + back("0") + pair("0") + back("0")}) {
    BOOST_TEST(FindingsIn(kHost + scenario) == "extra-pop cuCtxPopCurrent third>guest");
  }
}

BOOST_AUTO_TEST_CASE(push_and_pop_are_nothing) {
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | third host
cuCtxPopCurrent 2>1 | third host
check 1>1 | host
)") == "");
}

BOOST_AUTO_TEST_CASE(what_has_not_returned_is_nothing_yet) {
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | third host
check 2>2 | fourth third host
)") == "");
}

// Of each thread, unless exit() tells.
BOOST_AUTO_TEST_CASE(last_call_is_unsettled) {
  const auto count = [](const std::string& scenario) {
    Replayed replayed(LogOf(kHost + scenario));
    BOOST_TEST(replayed.error() == "");
    return replayed.analysis().Unsettled().size();
  };
  const std::string push = "cuCtxPushCurrent 1>2 context=2 | third host\n";
  const std::string others = "t2 cuCtxSetCurrent 0>1 context=1 | host\nt2 " + push;
  BOOST_TEST(FindingsIn(kHost + push) == "");
  BOOST_TEST(count(push) == 1u);
  BOOST_TEST(count(push + "check 2>2 | fourth third host\n") == 1u);
  BOOST_TEST(count(others) == 1u);
  BOOST_TEST(count("cuCtxSetLimit 1>1 context=1 setting=0 value=9 old=1 | third host\n") == 1u);
  BOOST_TEST(count(push + "process_end\n") == 0u);
  BOOST_TEST(count(others + "t2 thread_end\n") == 0u);
  BOOST_TEST(count(push + "cuCtxPopCurrent 2>1 | third host\n") == 0u);
  BOOST_TEST(count(push + "check 2>2 | host\ncuCtxPopCurrent 2>1 | host\n" + push) == 0u);
  BOOST_TEST(count("t2 cuCtxPushCurrent 0>1 context=1 | third\n") == 0u);
  BOOST_TEST(count("cuCtxPushCurrent 1>2 context=2 | host\n") == 0u);
}

BOOST_AUTO_TEST_CASE(a_thread_that_ends_has_returned) {
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | third host
thread_end
)") == "leaked-push cuCtxPushCurrent third>host");
}

BOOST_AUTO_TEST_CASE(extra_pop) {
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPopCurrent 1>0 | third host
check 0>0 | host
)") == "extra-pop cuCtxPopCurrent third>host");
  // By a null context, which pops.
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxSetCurrent 1>0 | third host
check 0>0 | host
)") == "extra-pop cuCtxSetCurrent third>host");
}

// Note [Whose pop was one too many].
BOOST_AUTO_TEST_CASE(a_pop_without_its_push) {
  const std::string push = "cuCtxPushCurrent 1>2 context=2 | third:1 host\n";
  const std::string helpers_pop = "cuCtxPopCurrent 2>1 | third:7 third:2 host\n";
  const std::string back = "check 0>0 | host\n";
  BOOST_TEST(FindingsIn(kHost + push + helpers_pop + "cuCtxPopCurrent 1>0 | third:3 host\n" +
                        back) == "extra-pop cuCtxPopCurrent third:7>host");
  // A helper's pop is right if the pop that follows is none of the push's function.
  BOOST_TEST(FindingsIn(kHost + push + helpers_pop +
                        "cuCtxPopCurrent 1>0 | third:8 third:3 host\n" + back) ==
             "extra-pop cuCtxPopCurrent third:8>host");
  // And if it took nothing that was pushed within the call.
  BOOST_TEST(FindingsIn(kHost + "cuCtxPopCurrent 1>0 | third:7 third:2 host\n" + back) ==
             "extra-pop cuCtxPopCurrent third:7>host");
}

BOOST_AUTO_TEST_CASE(pushes_and_pops_by_helpers) {
  Replayed helpers(LogOf(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | third:4 third:1 host
cuCtxPopCurrent 2>1 | third:5 third:6 third:2 host
cuCtxPopCurrent 1>0 | third:5 third:3 host
check 0>0 | host
)"));
  BOOST_TEST(helpers.analysis().Findings().at(0).chain->size() == 4);
}

BOOST_AUTO_TEST_CASE(two_pushes_and_three_pops) {
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | third:1 host
cuCtxPushCurrent 2>3 context=3 | third:1 host
cuCtxPopCurrent 3>2 | third:7 third:2 host
cuCtxPopCurrent 2>1 | third:3 host
cuCtxPopCurrent 1>0 | third:3 host
check 0>0 | host
)") == "extra-pop cuCtxPopCurrent third:7>host");
}

// It took the entry, and the pop is one too many.
BOOST_AUTO_TEST_CASE(a_destruction_before_a_pop) {
  BOOST_TEST(FindingsIn(kHost + R"(
context cuCtxCreate context=2 device=0 | third:1 host
cuCtxCreate 1>2 context=2 | third:1 host
cuCtxDestroy 2>1 context=2 | third:7 third:2 host
cuCtxPopCurrent 1>0 | third:3 host
check 0>0 | host
)") == "extra-pop cuCtxPopCurrent third:3>host");
}

BOOST_AUTO_TEST_CASE(pops_of_earlier_calls) {
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | third:1 host
cuCtxPopCurrent 2>1 | third:7 third:2 host
check 1>1 | host
cuCtxPopCurrent 1>0 | third:3 host
check 0>0 | host
)") == "extra-pop cuCtxPopCurrent third:3>host");
}

BOOST_AUTO_TEST_CASE(replaced) {
  BOOST_TEST(FindingsIn(kHost + R"(
cudaSetDevice 1>2 | third host
check 2>2 | host
)") == "replaced-context cudaSetDevice third>host");
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPopCurrent 1>0 | third host
cuCtxPushCurrent 0>2 context=2 | third:2 host
check 2>2 | host
)") == "replaced-context cuCtxPushCurrent third:2>host");
}

BOOST_AUTO_TEST_CASE(replaced_and_restored_is_nothing) {
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxSetCurrent 1>2 context=2 | third host
cuCtxSetCurrent 2>1 context=1 | third host
check 1>1 | host
)") == "");
}

BOOST_AUTO_TEST_CASE(left_a_context_current) {
  // Of the host it is enough that it manages contexts: at another time.
  const std::string left = R"(
context cudaMalloc context=5 device=0 primary=1 | cublas host
cudaMalloc 0>5 | cublas host
used cudaMalloc context=5 | cublas host
check 5>5 | host
)";
  BOOST_TEST(FindingsIn(left) == "");
  BOOST_TEST(FindingsIn(left + "cuCtxPushCurrent 5>6 context=6 | host") ==
             "created-primary cudaMalloc cublas>host; left-context cudaMalloc cublas>host");
  // In another thread it says nothing of this one's stack.
  BOOST_TEST(FindingsIn(left + "t2 cuCtxPushCurrent 0>6 context=6 | host") ==
             "created-primary cudaMalloc cublas>host");
}

BOOST_AUTO_TEST_CASE(the_device_that_the_caller_chose) {
  BOOST_TEST(FindingsIn(R"(
cudaSetDevice 0>5 device=0 | host
cudaSetDevice 5>6 device=1 | third host
check 6>6 | host
)") == "replaced-context cudaSetDevice third>host");
}

BOOST_AUTO_TEST_CASE(a_framework_under_python_is_nothing) {
  BOOST_TEST(FindingsIn(R"(
context cudaSetDevice context=5 device=0 primary=1 | c10 torch libpython python
cudaSetDevice 0>5 | c10 torch libpython python
used cudaMalloc context=5 | c10 torch libpython python
check 5>5 | libpython python
context cudaSetDevice context=6 device=1 primary=1 | c10 torch libpython python
cudaSetDevice 5>6 | c10 torch libpython python
used cudaMalloc context=6 | c10 torch libpython python
check 6>6 | libpython python
cudaSetDevice 6>5 | cublas c10 torch libpython python
cudaSetDevice 5>6 | cublas c10 torch libpython python
check 6>6 | c10 torch libpython python
check 6>6 | libpython python
t2 cudaSetDevice 0>5 | c10 torch libc
t2 thread_end
thread_end
)") == "");
}

BOOST_AUTO_TEST_CASE(functions_of_python_are_told_apart_by_package) {
  const std::string host = R"(
context cuCtxCreate context=1 device=0 | ffi ctypes libpython script python
cuCtxCreate 0>1 context=1 | ffi ctypes libpython script python
)";
  BOOST_TEST(FindingsIn(host + R"(
cuCtxPushCurrent 1>2 context=2 | ffi ctypes libpython encoder threading script python
check 2>2 | ffi ctypes libpython script python
)") == "leaked-push cuCtxPushCurrent encoder>script");
  BOOST_TEST(FindingsIn(host + R"(
cuCtxPushCurrent 1>2 context=2 | ffi ctypes libpython inner inner_other script python
check 2>2 | ffi ctypes libpython script python
)") == "leaked-push cuCtxPushCurrent inner>script");
  // A function of another one of its package's, and the standard library.
  for (const std::string caller : {"inner", "threading"}) {
    BOOST_TEST(FindingsIn(R"(
context cuCtxCreate context=1 device=0 | ffi ctypes libpython inner_other python
cuCtxCreate 0>1 context=1 | ffi ctypes libpython inner_other python
cuCtxPushCurrent 1>2 context=2 | ffi ctypes libpython )" +
                          caller + R"( libpython inner_other python
check 2>2 | ffi ctypes libpython inner_other python
)") == "",
               caller);
  }
  // A native module between two functions.
  BOOST_TEST(FindingsIn(host + R"(
cuCtxPushCurrent 1>2 context=2 | pycuda libpython encoder script python
check 2>2 | ffi ctypes libpython encoder script python
check 2>2 | ffi ctypes libpython script python
)") == "leaked-push cuCtxPushCurrent pycuda>script");
}

BOOST_AUTO_TEST_CASE(a_framework_that_replaces_a_users_context) {
  // By ctypes, which is the interpreter's own.
  BOOST_TEST(FindingsIn(R"(
context cuCtxCreate context=1 device=0 | ctypes ffi libpython python
cuCtxCreate 0>1 context=1 | ctypes ffi libpython python
cudaSetDevice 1>5 | c10 torch libpython python
check 5>5 | libpython python
)") == "replaced-context cudaSetDevice c10>libpython");
  // By a library that is not called at the time.
  BOOST_TEST(FindingsIn(R"(
context cuCtxCreate context=1 device=0 | pycuda libpython python
cuCtxCreate 0>1 context=1 | pycuda libpython python
check 1>1 | libpython python
cudaSetDevice 1>5 | c10 torch libpython python
check 5>5 | libpython python
)") == "replaced-context cudaSetDevice c10>libpython");
}

BOOST_AUTO_TEST_CASE(enter_and_leave) {
  const std::string enter = R"(
cuCtxPushCurrent 1>2 context=2 | third host
check 2>2 | host
)";
  const std::string work = R"(
cuCtxPushCurrent 2>3 context=3 | fourth host
cuCtxPopCurrent 3>2 | fourth host
cuCtxPushCurrent 2>3 context=3 | host
cuCtxPopCurrent 3>2 | host
)";
  BOOST_TEST(FindingsIn(kHost + enter + work) == "leaked-push cuCtxPushCurrent third>host");
  BOOST_TEST(FindingsIn(kHost + enter + work +
                        "cuCtxPopCurrent 2>1 | third:3 host\ncheck 1>1 | host") == "");
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxSetCurrent 1>2 context=2 | third host
check 2>2 | host
cuCtxSetCurrent 2>1 context=1 | third:2 host
check 1>1 | host
)") == "");
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPopCurrent 1>0 | third host
check 0>0 | host
cuCtxPushCurrent 0>1 context=1 | third:2 host
check 1>1 | host
)") == "");
  // Twice entered, by a library that it calls, and left at once.
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | fourth third host
check 2>2 | host
cuCtxPushCurrent 2>2 context=2 | fourth third host
check 2>2 | host
cuCtxPopCurrent 2>2 | fourth third:2 host
cuCtxPopCurrent 2>1 | fourth third:2 host
check 1>1 | host
)") == "");
  // Who called the one that entered leaves: for the host that is nothing.
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | fourth third host
check 2>2 | host
cuCtxPopCurrent 2>1 | third:2 host
check 1>1 | host
)") == "leaked-push cuCtxPushCurrent fourth>third");
}

BOOST_AUTO_TEST_CASE(a_repair_by_the_victim_leaves_the_finding) {
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | third host
cuCtxPopCurrent 2>1 | host
cuCtxPushCurrent 1>3 context=3 | third host
cuCtxPopCurrent 3>1 | third host
check 1>1 | host
)") == "leaked-push cuCtxPushCurrent third>host");
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxSetCurrent 1>2 context=2 | third host
cuCtxSetCurrent 2>1 context=1 | host
)") == "replaced-context cuCtxSetCurrent third>host");
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPopCurrent 1>0 | third host
cuCtxPushCurrent 0>1 context=1 | host
check 1>1 | host
)") == "extra-pop cuCtxPopCurrent third>host");
}

BOOST_AUTO_TEST_CASE(a_repair_by_who_called_the_culprit) {
  // The guest uses the runtime alone, and puts back what it found.
  BOOST_TEST(FindingsIn(kHost + R"(
cudaSetDevice 1>2 | third guest host
check 2>2 | guest host
cudaSetDevice 2>1 | guest host
check 1>1 | host
)") == "");
  // It does not: the culprit is still who did it.
  BOOST_TEST(FindingsIn(kHost + R"(
cudaSetDevice 1>2 | third guest host
check 2>2 | guest host
check 2>2 | host
)") == "replaced-context cudaSetDevice third>host");
}

BOOST_AUTO_TEST_CASE(one_victim_of_one_call) {
  // The guest has a context of its own current, and does not repair it for its host either.
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | guest host
cuCtxPushCurrent 2>3 context=3 | third guest host
check 3>3 | guest host
check 3>3 | host
)") == "leaked-push cuCtxPushCurrent guest>host; leaked-push cuCtxPushCurrent third>guest");
}

BOOST_AUTO_TEST_CASE(what_the_victim_returned_with_is_not_taken_back) {
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>4 context=4 | guest host
cuCtxPushCurrent 4>2 context=2 | third guest host
check 2>2 | guest host
check 2>2 | host
cuCtxPopCurrent 2>4 | third host
cuCtxPopCurrent 4>1 | guest host
check 1>1 | host
)") == "leaked-push cuCtxPushCurrent third>guest");
}

BOOST_AUTO_TEST_CASE(a_party_that_is_called_again_by_another_frame) {
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | third host
check 2>2 | third@8 host
)") == "leaked-push cuCtxPushCurrent third>host");
}

BOOST_AUTO_TEST_CASE(times_are_counted) {
  const Replayed replayed(LogOf(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | third host
cuCtxPopCurrent 2>1 | host
cuCtxPushCurrent 1>2 context=2 | third host
cuCtxPopCurrent 2>1 | host
cuCtxPushCurrent 1>2 context=2 | third host
check 2>2 | host
)"));
  const auto findings = replayed.Summary();
  BOOST_REQUIRE(findings.size() == 1u);
  BOOST_TEST(findings[0] == "leaked-push cuCtxPushCurrent third>host x3");
  BOOST_TEST(replayed.Text().find("count 3, first in thread 1 at 3 ns") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(re_entry_at_another_depth) {
  // The host's callback is an activation of its own; what it leaves is for the host to mind.
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | host:7 third host
check 2>2 | third host
check 2>2 | host
)") == "");
  // A culprit that is called again, deeper, has returned there.
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>4 context=4 | guest host
cuCtxPopCurrent 4>1 | guest host
cuCtxPushCurrent 1>2 context=2 | third guest third host
check 2>2 | guest third host
)") == "leaked-push cuCtxPushCurrent third>guest");
}

BOOST_AUTO_TEST_CASE(coroutines) {
  // The third's fiber pushes, is suspended, resumed by another caller, and pops.
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | third fiber
check 2>2 | host
check 2>2 | guest host
cuCtxPopCurrent 2>1 | third fiber
check 1>1 | host
)") == "");
  // What the host was in the middle of is not over because another stack of frames is seen.
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | guest host
check 2>2 | third fiber
cuCtxPopCurrent 2>1 | guest host
check 1>1 | host
)") == "");
}

BOOST_AUTO_TEST_CASE(frames_of_no_party) {
  // A callback by the C library's qsort, and code of a JIT compiler.
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | jit third libc host
check 2>2 | libc host
)") == "leaked-push cuCtxPushCurrent third>host");
  // Nobody is known.
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>2 context=2 | jit libc
check 2>2 | host
cuCtxPushCurrent 2>3 context=3
check 3>3 | host
)") == "");
}

BOOST_AUTO_TEST_CASE(changes_that_no_event_tells) {
  // By whom is not known, so it is no one's finding; and the model follows.
  Replayed replayed(LogOf(kHost + R"(
check 1>1 | third host
check 9>9 | host
cuCtxPushCurrent 9>2 context=2 | third host
check 2>2 | host
)"));
  BOOST_TEST(replayed.Summary().size() == 1u);
  BOOST_TEST(replayed.analysis().Stack(1) == (std::vector<std::uint64_t>{9, 2}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(failed_calls_change_nothing) {
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxPushCurrent 1>1 context=2 result=201 | third host
cuCtxPopCurrent 1>1 result=201 | third host
check 1>1 | host
)") == "");
}

BOOST_AUTO_TEST_CASE(destruction_takes_one_entry) {
  Replayed replayed(LogOf(kHost + R"(
cuCtxPushCurrent 1>1 context=1 | host
cuCtxDestroy 1>1 context=1 | host
)"));
  BOOST_TEST(replayed.analysis().Stack(1) == std::vector<std::uint64_t>{1},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(sixty_four_threads) {
  std::string scenario;
  for (const char* part :
       {"cuCtxCreate 0>1 context=1 | host", "cuCtxPushCurrent 1>2 context=2 | third host",
        "check 2>2 | host", "thread_end"}) {
    for (int thread = 1; thread <= 64; ++thread) {
      scenario += "t" + std::to_string(thread) + " " + part + "\n";
    }
  }
  BOOST_TEST(FindingsIn(scenario) == "leaked-push cuCtxPushCurrent third>host x64");
}

BOOST_AUTO_TEST_CASE(a_stack_deeper_than_what_is_kept) {
  // The oldest entries are forgotten, not their findings.
  std::string leaks = kHost;
  for (int i = 0; i < 5000; ++i) {
    leaks += "cuCtxPushCurrent 2>2 context=2 | third host\ncheck 2>2 | host\n";
  }
  BOOST_TEST(FindingsIn(leaks) == "leaked-push cuCtxPushCurrent third>host x5000");
  // Before the one who left them has returned there are none yet.
  BOOST_TEST(FindingsIn(kHost + R"(
10000* cuCtxPushCurrent 2>2 context=2 | third host
check 2>2 | host
)") == "leaked-push cuCtxPushCurrent third>host x4096");
  BOOST_TEST(FindingsIn(kHost + R"(
10000* cuCtxPushCurrent 2>2 context=2 | host
10000* cuCtxPopCurrent 2>2 | host
cuCtxPushCurrent 1>2 context=2 | third host
check 2>2 | host
)") == "leaked-push cuCtxPushCurrent third>host");
}

BOOST_AUTO_TEST_CASE(library_loaded_again_is_the_same) {
  const auto leak = [](const std::string& library) {
    return "cuCtxPushCurrent 1>2 context=2 | " + library + " host\ncuCtxPopCurrent 2>1 | host\n";
  };
  BOOST_TEST(FindingsIn(kHost + leak("third") + leak("third_again") + leak("third")) ==
             "leaked-push cuCtxPushCurrent third>host x3");
  BOOST_TEST(FindingsIn(kHost + leak("fourth") + leak("fourth_again") + leak("fourth_copy")) ==
             "leaked-push cuCtxPushCurrent fourth>host x3");
  // A copy with a name of its own is a library of its own.
  BOOST_TEST(FindingsIn(kHost + leak("fourth") + leak("fourth_twin")) ==
             "leaked-push cuCtxPushCurrent fourth>host; "
             "leaked-push cuCtxPushCurrent fourth_twin>host");
  // Code of another build.
  BOOST_TEST(FindingsIn(kHost + leak("fourth") + leak("fourth_rebuilt")) ==
             "leaked-push cuCtxPushCurrent fourth>host; "
             "leaked-push cuCtxPushCurrent fourth_rebuilt>host");
}

BOOST_AUTO_TEST_CASE(depth_is_that_of_the_first_time) {
  struct Row {
    std::string events;
    const char* depth;
  };
  for (const Row& row : {
           Row{"20* cuCtxPushCurrent 1>1 context=1 | third host\ncheck 1>1 | host\n", "depth 1\n"},
           Row{"cuCtxPushCurrent 1>2 context=2 | third host\n"
               "cuCtxPushCurrent 2>2 context=2 | third host\ncheck 2>2 | host\n",
               "depth 1\n"},
           Row{"cuCtxPushCurrent 1>2 context=2 | host\ncuCtxPushCurrent 2>3 context=3 | host\n"
               "cuCtxPopCurrent 3>2 | third host\ncuCtxPopCurrent 2>1 | third host\ncheck 1>1 | "
               "host\n",
               "depth -1\n"},
           // By another place, after the first one.
           Row{"cuCtxPushCurrent 1>2 context=2 | third host\n"
               "cuCtxPushCurrent 2>3 context=3 | third:2 host\ncheck 3>3 | host\n",
               "depth 2\n"},
       }) {
    const std::string text = Replayed(LogOf(kHost + row.events)).Text();
    BOOST_TEST(text.find(row.depth) != std::string::npos, row.events << text);
  }
}

BOOST_AUTO_TEST_CASE(fault_of_a_callback_is_the_cause_of_its_callers) {
  const std::string push = "cuCtxPushCurrent 1>2 context=2 | third host\n";
  const auto text = [](const std::string& events) {
    return Replayed(LogOf(kHost + events)).Text();
  };
  // The callback leaves an entry, which its caller pops in place of its own.
  const std::string leak = text(push + "cuCtxPushCurrent 2>3 context=3 | host:7 third host\n" +
                                "cuCtxPopCurrent 3>2 | third:2 host\ncheck 2>2 | host\n");
  BOOST_TEST(
      leak.find("  after leaked-push by cuCtxPushCurrent of /bin/host+0x7\n") != std::string::npos,
      leak);
  // It pops once too often, and so its caller does.
  const std::string pop = text(push + "cuCtxPopCurrent 2>1 | host:7 third host\n" +
                               "cuCtxPopCurrent 1>0 | third:2 host\ncheck 0>0 | host\n");
  BOOST_TEST(
      pop.find("  after extra-pop by cuCtxPopCurrent of /bin/host+0x7\n") != std::string::npos,
      pop);
  BOOST_TEST(text(push + "check 2>2 | host\n").find("  after leaked-push") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(nobody_is_harmed_at_exit) {
  const std::string pop = kHost + "process_end\ncuCtxPopCurrent 1>0 | third libc host:9\n";
  const std::string set = kHost + "process_end\ncuCtxSetCurrent 1>0 | third libc host:9\n";
  const std::string push =
      kHost + "process_end\ncuCtxPushCurrent 1>2 context=2 | third libc host:9\n";
  for (const std::string& at_exit : {pop, set, push}) {
    for (const char* then : {"", "thread_end\n", "check 0>0 | libc host:9\n",
                             "check cuMemFree 0>0 | fourth libc host:9\n"}) {
      BOOST_TEST(FindingsIn(at_exit + then) == "", then);
    }
  }
  // A destructor of the host's runs after it.
  BOOST_TEST(FindingsIn(pop + "check cuMemFree 0>0 | host:5 libc host:9\n") ==
             "extra-pop cuCtxPopCurrent third>host:9");
}

BOOST_AUTO_TEST_CASE(chain_that_ends_early) {
  // A destructor in dlclose() was called by code without unwind tables. The frame is below the
  // host's.
  const std::string pop = "cuCtxPopCurrent 1>0 | third@-4096\n";
  BOOST_TEST(FindingsIn(kHost + pop + "check 0>0 | host\n") ==
             "extra-pop cuCtxPopCurrent third>host");
  BOOST_TEST(
      FindingsIn(kHost + "cuCtxSetCurrent 1>2 context=2 | third@-4096\ncheck 2>2 | host\n") ==
      "replaced-context cuCtxSetCurrent third>host");
  BOOST_TEST(FindingsIn(kHost + pop + "cuCtxPushCurrent 0>1 context=1 | third@-4096\n" +
                        "check 1>1 | host\n") == "");
  // Those above it may not have returned.
  BOOST_TEST(FindingsIn(kHost + "cuCtxPushCurrent 1>2 context=2 | guest host\n" +
                        "check 2>2 | third@-4096\ncuCtxPopCurrent 2>1 | guest host\n" +
                        "check 1>1 | host\n") == "");
}

BOOST_AUTO_TEST_CASE(the_text_of_a_finding) {
  BOOST_TEST(Replayed(LogOf(kHost + R"(
cudaSetDevice 1>2 device=0 | third:7 guest:3 libc host:4
check 2>2 | host
)"))
                 .Text() ==
             "replaced-context by cudaSetDevice\n"
             "  culprit /lib/libthird.so+0x7\n"
             "  victim /bin/host+0x4\n"
             "  before 1 (of device 0, by /bin/host+0x1)\n"
             "  after 2 (of an unknown device)\n"
             "  count 1, first in thread 1 at 3 ns\n"
             "  result 0, device 0, depth 0\n"
             "  chain\n"
             "    /lib/libthird.so+0x7\n"
             "    /lib/libguest.so+0x3\n"
             "    /usr/lib/x86_64-linux-gnu/libc.so.6+0x1\n"
             "    /bin/host+0x4\n"
             "  victim's chain\n"
             "    /bin/host+0x1\n");
}

BOOST_AUTO_TEST_SUITE_END()
