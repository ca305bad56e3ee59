// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is a disturbance and what is none, by events in short notation (scenario.h): contexts,
// settings, errors and captures of a process. "third" and "fourth" disturb, "host" and "guest" are
// disturbed.

#include "audit/analysis.h"

#include <string>
#include <vector>

#include "test/scenario.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(audit_analysis_process)

namespace {

using cuguest_test::FindingsIn;
using cuguest_test::kHost;
using cuguest_test::LogOf;
using cuguest_test::Replayed;

}  // namespace

BOOST_AUTO_TEST_CASE(primary_created) {
  BOOST_TEST(FindingsIn(kHost + R"(
context cudaMalloc context=5 device=0 primary=1 | third host
)") == "created-primary cudaMalloc third>host");
  BOOST_TEST(FindingsIn(kHost + R"(
context cudaSetDevice context=5 device=0 primary=1 | third guest host
)") == "query-created-primary cudaSetDevice third>host");
  // By one's own choice.
  BOOST_TEST(FindingsIn(kHost + R"(
context cuDevicePrimaryCtxRetain context=5 device=0 primary=1 | host
)") == "");
}

BOOST_AUTO_TEST_CASE(primary_created_on_a_librarys_own_thread) {
  const std::string made = "context cudaMalloc context=5 device=0 primary=1 | third libc\n";
  // Nobody called: the victim is a party that has a context of its own there.
  BOOST_TEST(FindingsIn(kHost + "t2 " + made) == "created-primary cudaMalloc third>host");
  BOOST_TEST(
      FindingsIn(kHost + "t2 context cudaSetDevice context=5 device=0 primary=1 | third\n") ==
      "query-created-primary cudaSetDevice third>host");
  // Not a party that comes later.
  BOOST_TEST(FindingsIn("t2 " + made + kHost) == "");
  BOOST_TEST(FindingsIn("context cuCtxCreate context=1 device=0 | guest host\n"
                        "cuCtxCreate 0>1 context=1 | guest host\nt2 " +
                        made) == "created-primary cudaMalloc third>guest");
  // The host on a thread of its own, and a process without other contexts.
  BOOST_TEST(FindingsIn(kHost + "t2 context cudaMalloc context=5 device=0 primary=1 | host\n") ==
             "");
  BOOST_TEST(FindingsIn("check 0>0 | host\nt2 " + made) == "");
  // A script is the program, and a package is not.
  const std::string script =
      "context cuCtxCreate context=1 device=0 | ffi libpython third script python\n"
      "cuCtxCreate 0>1 context=1 | ffi libpython third script python\n"
      "t2 context cudaMalloc context=5 device=0 primary=1 | ffi libpython ";
  BOOST_TEST(FindingsIn(script + "script threading\n") == "");
  BOOST_TEST(FindingsIn(script + "encoder threading\n") ==
             "created-primary cudaMalloc encoder>third");
}

BOOST_AUTO_TEST_CASE(what_is_never_given_back) {
  const auto leaks = [](const std::string& events) {
    Replayed replayed(LogOf(kHost + events));
    std::string text;
    for (const cuguest::audit::Finding& finding : replayed.analysis().Leaks()) {
      text += std::string(Identifier(finding.kind)) + " x" + std::to_string(finding.count) + ";";
    }
    return text;
  };
  const std::string retain = "cuDevicePrimaryCtxRetain 1>1 context=5 device=0 | third host\n";
  const std::string release = "cuDevicePrimaryCtxRelease 1>1 device=0 | third host\n";
  BOOST_TEST(leaks(retain + retain + retain) == "leaked-reference x3;");
  BOOST_TEST(leaks(retain + retain + release) == "leaked-reference x1;");
  BOOST_TEST(leaks(retain + release) == "");
  // What runtimes hold until the end.
  for (const char* runtime : {"runtime=1", "runtime=2"}) {
    BOOST_TEST(leaks(std::string("cuDevicePrimaryCtxRetain 1>1 context=5 device=0 ") + runtime +
                     " | third host\n") == "");
  }
  // Objects as scenario.cc numbers them: 2 is "guest"; 3, "third", is loaded again.
  const std::string made = "context cuCtxCreate context=7 device=0 | guest host\n";
  BOOST_TEST(leaks(made) == "");
  BOOST_TEST(leaks(made + "unloaded value=2\n") == "leaked-context x1;");
  BOOST_TEST(leaks(made + "unloaded value=4\n") == "");
  BOOST_TEST(leaks(made + "cuCtxDestroy 1>1 context=7 | guest host\nunloaded value=2\n") == "");
  BOOST_TEST(leaks("context cuCtxCreate context=7 device=0 | third host\nunloaded value=3\n") ==
             "");
}

BOOST_AUTO_TEST_CASE(first_uses_are_noted) {
  Replayed replayed(LogOf("initialized cuInit 0>0 | third host\n" + kHost +
                          "cuCtxPushCurrent 1>1 context=1 | guest host\n"
                          "cuCtxPushCurrent 1>1 context=1 | fourth host\n"
                          "context cuCtxCreate context=2 device=1 | guest host\n"));
  std::string text;
  for (const auto& use : replayed.analysis().FirstUses()) {
    text += std::to_string(use.what) + " " + use.finding.call + " " +
            std::to_string(use.finding.culprit.object) + ";";
  }
  BOOST_TEST(text ==
             "0 cuInit 3;1 cuCtxCreate 1;2 cuCtxCreate 1;2 cuCtxPushCurrent 2;1 cuCtxCreate 2;");
}

BOOST_AUTO_TEST_CASE(work_lost_with_a_context) {
  const std::string create = R"(
context cuCtxCreate context=1 device=0 | third host
cuCtxCreate 0>1 context=1 | third host
)";
  const std::string destroy = "cuCtxDestroy 1>0 context=1 | third host\ncheck 0>0 | host\n";
  const std::string work = "used cudaMalloc 1>1 context=1 | host:7 third host\n";
  BOOST_TEST(FindingsIn(create + work + destroy) == "destroyed-work cuCtxDestroy third>host:7");
  // By an enter and a leave function, and by a library that the host called.
  BOOST_TEST(FindingsIn(create + "used cuStreamCreate 1>1 context=1 | host\n" + destroy) ==
             "destroyed-work cuCtxDestroy third>host");
  BOOST_TEST(FindingsIn(create + "used cuModuleLoad 1>1 context=1 | guest host\n" + destroy) == "");
  // Its own work; and what the host freed again.
  BOOST_TEST(FindingsIn(create + "used cudaMalloc 1>1 context=1 | third host\n" + destroy) == "");
  BOOST_TEST(FindingsIn(create + work + "used cudaFree 1>1 context=1 | host:8 third host\n" +
                        destroy) == "");
  // The host gave it: a library knows that it works in its caller's context.
  BOOST_TEST(FindingsIn(kHost + "used cudaMalloc 1>1 context=1 | third host\n" +
                        "cuCtxDestroy 1>0 context=1 | host\n") == "");
  // The host put it there itself.
  BOOST_TEST(FindingsIn(create + "cuCtxPopCurrent 1>0 | third host\n" +
                        "cuCtxPushCurrent 0>1 context=1 | host\n" +
                        "used cudaMalloc 1>1 context=1 | host\ncuCtxPopCurrent 1>0 | host\n" +
                        "cuCtxDestroy 0>0 context=1 | third host\n") == "");
  // Work that leaves nothing.
  BOOST_TEST(FindingsIn(create + "used cuLaunchKernel 1>1 context=1 | host:7 third host\n" +
                        destroy) == "");
}

BOOST_AUTO_TEST_CASE(reset_in_which_the_runtime_releases) {
  const std::string sibling = R"(
context cudaMalloc context=5 device=0 primary=1 | guest host
cuDevicePrimaryCtxRetain 0>0 context=5 device=0 primary=1 runtime=1 | guest host
used cudaMalloc 0>5 context=5 | guest host
cudaMalloc 0>5 | guest host
cuDevicePrimaryCtxRelease 5>5 device=0 primary=1 runtime=1 | third host
)";
  BOOST_TEST(FindingsIn(sibling + "cudaDeviceReset 5>5 context=5 | third host") ==
             "reset-primary cudaDeviceReset third>guest");
  // The host's own, and that of the runtime when it is unloaded.
  BOOST_TEST(FindingsIn(sibling + "check 5>5 | third host") == "");
  std::string by_host = sibling;
  by_host.replace(by_host.rfind("third host"), 10, "host");
  BOOST_TEST(FindingsIn(by_host + "cudaDeviceReset 5>5 context=5 | host") == "");
  // The one who made it and another one who works there.
  BOOST_TEST(FindingsIn(R"(
context cudaMalloc context=5 device=0 primary=1 | third host
cuDevicePrimaryCtxRetain 0>0 context=5 device=0 primary=1 runtime=1 | third host
cudaMalloc 0>5 | third host
used cudaMalloc 5>5 context=5 | guest host
cuDevicePrimaryCtxRelease 5>5 device=0 primary=1 runtime=1 | third host
cudaDeviceReset 5>5 context=5 | third host
)") == "reset-primary cudaDeviceReset third>guest");
}

BOOST_AUTO_TEST_CASE(device_zero_touched) {
  const std::string on_one = R"(
context cudaSetDevice context=5 device=1 primary=1 | host
cudaSetDevice 0>5 | host
used cudaMalloc context=5 | host
context cudaSetDevice context=6 device=0 primary=1 | third host
)";
  BOOST_TEST(FindingsIn(on_one) == "touched-device-zero cudaSetDevice third>-");
  BOOST_TEST(FindingsIn(on_one + "used cudaMalloc context=6 | third host") == "");
  // The other context's device is not known, so it may have been this one.
  std::string unknown = on_one;
  unknown.replace(unknown.find("device=1"), 8, "device=-1");
  BOOST_TEST(FindingsIn(unknown) == "");
  // Nobody had chosen another.
  BOOST_TEST(FindingsIn("context cudaSetDevice context=6 device=0 primary=1 | third host") == "");
}

BOOST_AUTO_TEST_CASE(primary_reset) {
  const std::string held = R"(
context cuDevicePrimaryCtxRetain context=5 device=0 primary=1 | guest host
cuDevicePrimaryCtxRetain 0>0 context=5 device=0 | guest host
)";
  BOOST_TEST(FindingsIn(held + "cuDevicePrimaryCtxReset 0>0 device=0 | third host") ==
             "reset-primary cuDevicePrimaryCtxReset third>guest");
  BOOST_TEST(FindingsIn(held + "cuDevicePrimaryCtxRelease 0>0 device=0 | guest host\n" +
                        "cuDevicePrimaryCtxReset 0>0 device=0 | third host") == "");
  BOOST_TEST(FindingsIn(held + "process_end\ncudaDeviceReset 0>0 device=0 | third host") == "");
  // One's own, and that of a library that one calls.
  BOOST_TEST(FindingsIn(held + "cuDevicePrimaryCtxReset 0>0 device=0 | host") == "");
  // On another thread's stack.
  BOOST_TEST(FindingsIn(R"(
context cudaMalloc context=5 device=0 primary=1 | guest
t2 cudaMalloc 0>5 | guest
cudaMalloc 0>5 | third
cudaDeviceReset 5>5 | third
)") == "reset-primary cudaDeviceReset third>guest");
  // Current, whether the source says that nothing is behind the reset (CUPTI), or that it still is.
  for (const char* after : {"0", "5"}) {
    const std::string current = R"(
context cuCtxPushCurrent context=5 device=0 primary=1 | host
cuCtxPushCurrent 0>5 context=5 | host
)";
    const std::string then = std::string(after) + ">" + after;
    BOOST_TEST(FindingsIn(current + "cuDevicePrimaryCtxReset 5>" + after +
                          " device=0 | third host\ncuCtxGetDevice " + then + " | host") ==
               "reset-primary cuDevicePrimaryCtxReset third>host");
  }
}

// -----------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_primary_that_its_maker_ends_is_nothing) {
  const std::string made = R"(
cuCtxCreate 0>1 context=1 | host
context cuDevicePrimaryCtxRetain context=5 device=0 primary=1 | guest host
cuDevicePrimaryCtxRetain 1>1 context=5 device=0 | guest host
)";
  BOOST_TEST(FindingsIn(made) == "created-primary cuDevicePrimaryCtxRetain guest>host");
  BOOST_TEST(FindingsIn(made + "cuDevicePrimaryCtxRelease 1>1 device=0 | guest host") == "");
  // Another's release leaves what the guest did, once, also when there is a next one.
  const std::string ended = made + R"(
cuDevicePrimaryCtxRetain 1>1 context=5 device=0 | third host
cuDevicePrimaryCtxRelease 1>1 device=0 | guest host
)";
  BOOST_TEST(FindingsIn(ended + "cuDevicePrimaryCtxRelease 1>1 device=0 | third host") ==
             "created-primary cuDevicePrimaryCtxRetain guest>host");
}

// What a runtime retains in a call of a library is no driver call of the library's.
BOOST_AUTO_TEST_CASE(a_runtimes_retain_does_not_make_a_library_manage_contexts) {
  BOOST_TEST(FindingsIn(R"(
cuDevicePrimaryCtxRetain 0>0 device=0 runtime=2 | guest host
cudaSetDevice 0>5 | third guest host
check 5>5 | guest host
)") == "");
}

BOOST_AUTO_TEST_CASE(primary_released_too_often) {
  const std::string held = R"(
context cuDevicePrimaryCtxRetain context=5 device=0 primary=1 | guest host
cuDevicePrimaryCtxRetain 0>0 context=5 device=0 | guest host
cuDevicePrimaryCtxRetain 0>0 context=5 device=0 | third host
cuDevicePrimaryCtxRelease 0>0 device=0 | third host
)";
  BOOST_TEST(FindingsIn(held) == "");
  BOOST_TEST(FindingsIn(held + "cuDevicePrimaryCtxRelease 0>0 device=0 | third:2 host") ==
             "over-released-primary cuDevicePrimaryCtxRelease third:2>guest");
  BOOST_TEST(FindingsIn(held + "cuDevicePrimaryCtxRelease 0>0 device=0 result=201 | third host") ==
             "");
  // What it had the guest retain it may release.
  BOOST_TEST(FindingsIn(held + "cuDevicePrimaryCtxRelease 0>0 device=0 | host") == "");
  // The reference of the runtime, which it took in a call of the guest's.
  const std::string lazy = R"(
context cudaMalloc context=5 device=0 primary=1 | guest
cuDevicePrimaryCtxRetain 0>0 context=5 device=0 runtime=1 | guest
cudaMalloc 0>5 | guest
)";
  BOOST_TEST(FindingsIn(lazy + "cuDevicePrimaryCtxRelease 5>5 device=0 | third guest") ==
             "over-released-primary cuDevicePrimaryCtxRelease third>guest");
  // It releases that when it is unloaded, in whatever call that happens.
  BOOST_TEST(FindingsIn(lazy + "cuDevicePrimaryCtxRelease 5>5 device=0 runtime=1 | third host") ==
             "");
  // One that is linked into a library is that library.
  BOOST_TEST(FindingsIn(R"(
context cudaMalloc context=5 device=0 primary=1 | guest host
cuDevicePrimaryCtxRetain 0>0 context=5 device=0 runtime=2 | guest host
cuDevicePrimaryCtxRetain 0>0 context=5 device=0 runtime=2 | third host
cuDevicePrimaryCtxRelease 5>5 device=0 | third
cuDevicePrimaryCtxRelease 5>5 device=0 | guest
)") == "");
}

BOOST_AUTO_TEST_CASE(context_destroyed) {
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxDestroy 1>0 context=1 | third host
check 0>0 | host
)") == "destroyed-context cuCtxDestroy third>host");
  // It is on no stack. Whether somebody counted on it is known when that one uses it.
  const std::string handed_over = R"(
context cuCtxCreate context=1 device=0 | guest host
cuCtxCreate 0>1 context=1 | guest host
cuCtxPopCurrent 1>0 | guest host
cuCtxDestroy 0>0 context=1 | third host
)";
  BOOST_TEST(FindingsIn(handed_over) == "");
  BOOST_TEST(FindingsIn(handed_over + "entered cuCtxPushCurrent context=1 | guest:2 host") ==
             "destroyed-context cuCtxDestroy third>guest:2");
  // By the one that had it made.
  BOOST_TEST(FindingsIn(R"(
context cuCtxCreate context=1 device=0 | guest host
cuCtxCreate 0>1 context=1 | guest host
cuCtxPopCurrent 1>0 | guest host
cuCtxDestroy 0>0 context=1 | host
)") == "");
}

BOOST_AUTO_TEST_CASE(context_destroyed_on_another_threads_stack) {
  const std::string made = R"(
context cuCtxCreate context=1 device=0 | third host
cuCtxCreate 0>1 context=1 | third host
cuCtxPopCurrent 1>0 | third host
t2 cuCtxPushCurrent 0>1 context=1 | guest host
)";
  BOOST_TEST(FindingsIn(made + "cuCtxDestroy 0>0 context=1 | third host") ==
             "destroyed-in-use cuCtxDestroy third>guest");
  BOOST_TEST(FindingsIn(made + "t2 cuCtxPopCurrent 1>0 | guest host\n"
                               "cuCtxDestroy 0>0 context=1 | third host") == "");
  BOOST_TEST(FindingsIn(made + "t2 thread_end\ncuCtxDestroy 0>0 context=1 | third host") == "");
}

BOOST_AUTO_TEST_CASE(destroyed_handle_used) {
  const std::string destroyed = kHost + "cuCtxDestroy 1>0 context=1 | host\n";
  BOOST_TEST(FindingsIn(destroyed + "entered cuCtxPushCurrent context=1 | third host") ==
             "used-destroyed-context cuCtxPushCurrent third>-");
  // Told before and after, it is one.
  BOOST_TEST(FindingsIn(destroyed + "entered cuCtxSetCurrent context=1 | third host\n"
                                    "cuCtxSetCurrent 0>1 context=1 | third host") ==
             "used-destroyed-context cuCtxSetCurrent third>-");
  BOOST_TEST(FindingsIn(destroyed + "cuCtxPushCurrent 0>1 context=1 | third host") ==
             "used-destroyed-context cuCtxPushCurrent third>-");
}

BOOST_AUTO_TEST_CASE(setting_changed) {
  const std::string changed = kHost + R"(
cuCtxSetLimit 1>1 setting=1 value=9 old=4 | third host
)";
  BOOST_TEST(FindingsIn(changed) == "");  // it may still put it back
  BOOST_TEST(FindingsIn(changed + "check 1>1 | host") ==
             "changed-setting cuCtxSetLimit third>host");
  BOOST_TEST(FindingsIn(changed + "cuCtxSetLimit 1>1 setting=1 value=4 old=9 | third host\n"
                                  "check 1>1 | host") == "");
  BOOST_TEST(FindingsIn(changed + "check 1>1 | host\n"
                                  "cudaDeviceSetLimit 1>1 setting=1 value=4 old=9 | third:2 host\n"
                                  "check 1>1 | host") == "");
  // Another limit is not this one; and the host's repair leaves the finding.
  BOOST_TEST(FindingsIn(changed + "cuCtxSetLimit 1>1 setting=2 value=4 old=4 | third host\n"
                                  "check 1>1 | host\n"
                                  "cuCtxSetLimit 1>1 setting=1 value=4 old=9 | host") ==
             "changed-setting cuCtxSetLimit third>host");
  // One's own.
  BOOST_TEST(FindingsIn(kHost + "cuCtxSetLimit 1>1 setting=1 value=9 old=4 | host\n"
                                "thread_end") == "");
  // Of a context that is gone by now.
  BOOST_TEST(FindingsIn(changed + "cuCtxDestroy 1>0 context=1 | host") ==
             "changed-setting cuCtxSetLimit third>host");
  // What it was is not known.
  BOOST_TEST(FindingsIn(kHost + R"(
cuCtxSetCacheConfig 1>1 value=2 old=18446744073709551615 | third host
check 1>1 | host
)") == "changed-setting cuCtxSetCacheConfig third>host");
  BOOST_TEST(FindingsIn(kHost + R"(
context cudaMalloc context=5 device=0 primary=1 | host
cuDevicePrimaryCtxSetFlags 1>1 device=0 value=2 old=0 | third host
check 1>1 | host
)") == "changed-setting cuDevicePrimaryCtxSetFlags third>host");
}

BOOST_AUTO_TEST_CASE(last_error_left) {
  const std::string failed = "cudaMalloc 1>1 result=2 | third host\n";
  BOOST_TEST(FindingsIn(failed + "cudaGetLastError 1>1 result=2 | host") ==
             "left-error cudaMalloc third>host");
  BOOST_TEST(FindingsIn(failed + "check 1>1 | host") == "");
  BOOST_TEST(FindingsIn(failed + "cudaGetLastError 1>1 result=2 | third host\n"
                                 "cudaGetLastError 1>1 result=2 | host") == "");
  BOOST_TEST(FindingsIn(failed + "cudaGetLastError 1>1 result=2 | fourth third host\n"
                                 "cudaGetLastError 1>1 result=2 | host") == "");
  BOOST_TEST(FindingsIn("cudaStreamQuery 1>1 result=600 | third host\n"
                        "cudaGetLastError 1>1 result=600 | host") == "");
  // The driver's calls set none.
  BOOST_TEST(FindingsIn("cuMemAlloc 1>1 result=2 | third host\n"
                        "cudaGetLastError 1>1 result=2 | host") == "");
}

BOOST_AUTO_TEST_CASE(capture_broken) {
  const std::string begin = "cuStreamBeginCapture 1>1 | guest host\n";
  BOOST_TEST(FindingsIn(begin + "cuMemAlloc 1>1 result=900 | third guest host") ==
             "broke-capture cuMemAlloc third>guest");
  BOOST_TEST(FindingsIn(begin + "cuMemAlloc 1>1 result=900 | third guest host\n"
                                "cuStreamWaitEvent 1>1 result=901 | third guest host\n"
                                "cuStreamEndCapture 1>1 result=901 | guest host") ==
             "broke-capture cuMemAlloc third>guest");
  BOOST_TEST(FindingsIn(begin + "cuMemAlloc 1>1 result=900 | guest host") == "");  // its own doing
  BOOST_TEST(FindingsIn(begin + "cuStreamEndCapture 1>1 | guest host\n"
                                "cuMemAlloc 1>1 result=900 | third host") == "");
  BOOST_TEST(FindingsIn(begin + "cuStreamIsCapturing 1>1 result=906 | third guest host") == "");
  // From another thread, by the capture's mode.
  BOOST_TEST(FindingsIn("cuStreamBeginCapture 1>1 value=7 setting=0 | guest host\n"
                        "t2 cuMemAlloc 1>1 result=900 | third") ==
             "broke-capture cuMemAlloc third>guest");
  BOOST_TEST(FindingsIn("cuStreamBeginCapture 1>1 value=7 setting=1 | guest host\n"
                        "t2 cuMemAlloc 1>1 result=900 | third") == "");
  BOOST_TEST(FindingsIn("cuStreamBeginCapture 1>1 value=7 setting=2 | guest host\n"
                        "t2 cuLaunchKernel 1>1 result=906 | third") ==
             "broke-capture cuLaunchKernel third>guest");
}

BOOST_AUTO_TEST_CASE(forked_child) {
  BOOST_TEST(FindingsIn("cudaFree 0>0 result=3 | third host", true) ==
             "forked-child cudaFree third>-");
  BOOST_TEST(FindingsIn("cudaFree 0>0 result=3 | third host", false) == "");
}

BOOST_AUTO_TEST_CASE(after_shutdown) {
  BOOST_TEST(FindingsIn("process_end\n2* cuMemFree 0>0 result=4 | third host") ==
             "after-shutdown cuMemFree third>- x2");
  BOOST_TEST(FindingsIn("process_end\ncuLibraryUnload 0>0 result=4 | third host") == "");
}

BOOST_AUTO_TEST_CASE(calls_that_fail_are_noise) {
  const auto noise = [](const std::string& events) {
    Replayed replayed(LogOf(kHost + events));
    std::string text;
    for (const cuguest::audit::Finding& finding : replayed.analysis().Noise()) {
      text += cuguest::audit::Text(finding, replayed.analysis().objects());
    }
    BOOST_TEST(replayed.Summary().empty());
    return text;
  };
  const std::string text = noise("3* cuDeviceGet 1>1 result=101 | guest third libc host");
  BOOST_TEST(text.find("noisy-call by cuDeviceGet\n  culprit /lib/libguest.so+0x1\n"
                       "  victim /lib/libthird.so+0x1\n") == 0u,
             text);
  BOOST_TEST(text.find("  count 3, first in thread 1 at ") != std::string::npos);
  // In a thread of the library's own.
  for (const char* library : {"guest", "ffi libpython encoder threading"}) {
    BOOST_TEST(noise(std::string("t2 cuDeviceGet 0>0 result=101 | ") + library)
                       .find("  victim unknown\n") != std::string::npos,
               library);
  }
  for (const char* quiet :
       {"cuDeviceGet 1>1 | guest host", "cuLibraryUnload 1>1 result=4 | guest host",
        "cuStreamQuery 1>1 result=600 | guest host", "cudaGetLastError 1>1 result=101 | guest host",
        "cudaPeekAtLastError 1>1 result=101 | guest host", "cuDeviceGet 1>1 result=101 | host",
        "cuDeviceGet 1>1 result=101 | ffi libpython script python", "cuDeviceGet 1>1 result=101"}) {
    BOOST_TEST(noise(quiet) == "", quiet);
  }
}

BOOST_AUTO_TEST_CASE(limits_that_were_reached) {
  const auto limits = [](const std::string& events) {
    const std::vector<std::string> all = Replayed(LogOf(kHost + events)).analysis().Limits();
    std::string text;
    for (const std::string& limit : all) text += limit.substr(0, limit.find(':')) + ";";
    return text;
  };
  const auto fibers = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += "check 1>1 | guest host@" + std::to_string(100'000 * (i + 1)) + "\n";
    }
    return text;
  };
  const auto contexts = [](int count) {
    std::string text;
    for (int i = 2; i < count + 2; ++i) {
      const std::string id = std::to_string(i);
      text += "context cuCtxCreate context=" + id +
              " device=0 | host\ncuCtxDestroy 1>1 context=" + id + " | host\n";
    }
    return text + "entered cuCtxPushCurrent context=2 | host\n";
  };
  const auto workers = [](int count) {
    std::string log = LogOf(kHost);
    std::string events;
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(100 + i);
      events += "object " + number + " - /lib/w" + number + ".so\nchain " + number + " " + number +
                "+1@4fe00 1+1@4ff00\nused 1 99 cuMemAlloc context=1 chain=" + number + "\n";
    }
    log.insert(log.rfind("end\n"), events);
    return Replayed(log).analysis().Limits().size();
  };
  BOOST_TEST(limits("256* cuStreamBeginCapture 1>1 value=7 | host") == "");
  BOOST_TEST(limits("257* cuStreamBeginCapture 1>1 value=7 | host") ==
             "more than 256 captures were in progress at one time;");
  BOOST_TEST(limits("4095* cuCtxPushCurrent 1>1 context=1 | host") == "");
  BOOST_TEST(limits("4096* cuCtxPushCurrent 1>1 context=1 | host") ==
             "a stack had more than 4096 contexts;");
  BOOST_TEST(limits(fibers(7)) == "");
  BOOST_TEST(limits(fibers(9)) == "a thread ran more than 8 stacks of calls, as fibers do;");
  BOOST_TEST(limits(contexts(1024)) == "");
  BOOST_TEST(limits(contexts(1025)) ==
             "a context was used after 1024 others had been destroyed since its end;");
  BOOST_TEST(workers(16) == 0u);
  BOOST_TEST(workers(17) == 1u);
}

BOOST_AUTO_TEST_CASE(a_culprit_that_was_unloaded_keeps_its_name) {
  std::string log =
      LogOf(kHost + "cuCtxPushCurrent 1>2 context=2 | third host\ncheck 2>2 | host\n");
  log.insert(log.rfind("end\n"),
             "object 30 - /lib/libfourth.so\nchain 99 30+1@4fe00 1+1@4ff00\n"
             "call 1 99 cuCtxPushCurrent before=2 after=3 context=3 chain=99\n"
             "call 1 100 cuCtxPopCurrent before=3 after=2 chain=99\n");
  const Replayed replayed(log);
  BOOST_TEST(replayed.error() == "");
  BOOST_TEST(replayed.Text().find("culprit /lib/libthird.so+0x1\n") != std::string::npos);
  BOOST_TEST(replayed.Summary().size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_guest_with_a_guard_is_nothing) {
  BOOST_TEST(FindingsIn(R"(
context cudaMalloc context=5 device=0 primary=1 | c10 torch libpython python
cudaMalloc 0>5 | c10 torch libpython python
used cudaMalloc context=5 | c10 torch libpython python
cuDevicePrimaryCtxRetain 5>5 device=0 context=5 | guest libpython python
context cuCtxCreate context=6 device=0 | guest libpython python
cuCtxCreate 5>6 context=6 | guest libpython python
cuCtxPopCurrent 6>5 | guest libpython python
check 5>5 | libpython python
cuCtxPushCurrent 5>6 context=6 | guest libpython python
cublasSetStream 6>6 | cublas guest libpython python
cuCtxPopCurrent 6>5 | guest libpython python
check 5>5 | libpython python
cuCtxDestroy 5>5 context=6 | guest libpython python
cuDevicePrimaryCtxRelease 5>5 device=0 | guest libpython python
thread_end
process_end
)") == "");
}

BOOST_AUTO_TEST_SUITE_END()
