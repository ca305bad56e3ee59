// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Audits in the process of a test: of code that is linked into the test itself, and of libraries.

#include "cuguest/testing/audit.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cudasim/tool.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "subprojects/cudasim/test/support/raw_driver.h"
#include "test/support/scenario.h"
#include "test/support/test.h"

using cuguest::ContextGuard;
using cuguest::testing::Audit;
using cuguest::testing::AuditFinding;
using cuguest::testing::kAuditedCallable;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TheDriver;

// A guest as a static library is one: in the test's own object.
namespace guest {

[[gnu::noinline]] void LeakPush(CUcontext context) {
  TheDriver().CtxPushCurrent(context);
  asm volatile("");
}

[[gnu::noinline]] void Replace(CUcontext context) {
  TheDriver().CtxSetCurrent(context);
  asm volatile("");
}

[[gnu::noinline]] void Pop() {
  CUcontext popped = nullptr;
  TheDriver().CtxPopCurrent(&popped);
  asm volatile("");
}

// To what the context, which may have served another case, does not have yet.
[[gnu::noinline]] void ChangeLimit() {
  std::size_t bytes = 0;
  RAW(cuCtxGetLimit)(&bytes, CU_LIMIT_STACK_SIZE);
  RAW(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, bytes + 1024);
  asm volatile("");
}

}  // namespace guest

namespace {

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

[[gnu::noinline]] std::vector<AuditFinding> Findings(absl::FunctionRef<void()> callable) {
  absl::StatusOr<std::vector<AuditFinding>> findings = Audit(callable);
  BOOST_REQUIRE_MESSAGE(findings.ok(), findings.status().ToString());
  for (const AuditFinding& finding : *findings) BOOST_TEST_MESSAGE(finding);
  return *std::move(findings);
}

// The only one.
AuditFinding Finding(absl::FunctionRef<void()> callable) {
  const std::vector<AuditFinding> findings = Findings(callable);
  BOOST_REQUIRE(findings.size() == 1u);
  return findings[0];
}

// Of libhostile.so, or of the runtime that it is linked with.
void* HostileSymbol(const std::string& name) {
  void* library = dlopen(std::getenv("CUGUEST_TEST_AUDIT_HOSTILE"), RTLD_NOW | RTLD_LOCAL);
  void* symbol = library != nullptr ? dlsym(library, name.c_str()) : nullptr;
  if (symbol == nullptr) throw std::runtime_error(dlerror());
  return symbol;
}

// hostile::NAME(CUcontext)
void (*Hostile(const std::string& name))(CUcontext) {
  const std::string mangled = "_ZN7hostile" + std::to_string(name.size()) + name + "EP8CUctx_st";
  return reinterpret_cast<void (*)(CUcontext)>(HostileSymbol(mangled));
}

// A context on the stack of the calling thread, and another one that is not.
struct Contexts {
  Contexts() { SetStack({own.get()}); }
  ~Contexts() { SetStack({}); }

  OwnContext own;
  OwnContext other;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(audit, Contexts)

BOOST_AUTO_TEST_CASE(leaked_push_of_the_program_itself) {
  const AuditFinding finding = Finding([&] { guest::LeakPush(other.get()); });
  BOOST_TEST(finding.kind == "leaked-push");
  BOOST_TEST(finding.call == "cuCtxPushCurrent");
  BOOST_TEST(finding.culprit_object == kAuditedCallable);
  BOOST_TEST(finding.culprit_function == "guest::LeakPush");
  BOOST_TEST(FileName(finding.victim_object) == "audit_audit_test");
  BOOST_TEST(finding.count == 1u);
  BOOST_TEST(finding.text.find("1 entry more on the context stack") != std::string::npos);
  BOOST_TEST(finding.text.find("guest::LeakPush") != std::string::npos);
  BOOST_TEST(GetStack().size() == 2u);  // as the callable left it
}

BOOST_AUTO_TEST_CASE(callable_that_ends_with_the_call) {
  const auto push = TheDriver().CtxPushCurrent;
  const AuditFinding finding = Finding([push, context = own.get()] { push(context); });
  BOOST_TEST(finding.kind == "leaked-push");
  BOOST_TEST(finding.culprit_object == kAuditedCallable);
}

BOOST_AUTO_TEST_CASE(victim_is_the_function_that_called) {
  const AuditFinding finding = Finding([&] { guest::LeakPush(own.get()); });
  BOOST_TEST(finding.victim_function.find("Finding") != std::string::npos, finding.victim_function);
}

BOOST_AUTO_TEST_CASE(replaced_context) {
  const AuditFinding finding = Finding([&] { guest::Replace(other.get()); });
  BOOST_TEST(finding.kind == "replaced-context");
  BOOST_TEST(finding.culprit_function == "guest::Replace");
}

BOOST_AUTO_TEST_CASE(devices_of_the_callers_contexts, *cuguest_test::NeedsDevices(2)) {
  const OwnContext on_one(1);
  SetStack({own.get(), on_one.get()});
  const AuditFinding finding = Finding([] { guest::Pop(); });
  const auto tells = [&](const std::string& what, const std::string& device) {
    const std::regex line(what + ": +context \\d+ \\(" + device +
                          ", created by audit_audit_test\\b");
    return std::regex_search(finding.text, line);
  };
  BOOST_TEST(tells("had", "device 1"), finding.text);
  BOOST_TEST(tells("left", "device 0"), finding.text);
}

BOOST_AUTO_TEST_CASE(extra_pop_of_one_of_two_alike) {
  SetStack({own.get(), own.get()});
  const AuditFinding finding = Finding([] { guest::Pop(); });
  BOOST_TEST(finding.kind == "extra-pop");
  BOOST_TEST(finding.culprit_function == "guest::Pop");
}

BOOST_AUTO_TEST_CASE(left_context_on_an_empty_stack) {
  SetStack({});
  const AuditFinding finding = Finding([&] { guest::Replace(own.get()); });
  BOOST_TEST(finding.kind == "left-context");
}

BOOST_AUTO_TEST_CASE(changed_limit) {
  const AuditFinding finding = Finding([] { guest::ChangeLimit(); });
  BOOST_TEST(finding.kind == "changed-setting");
  BOOST_TEST(finding.call == "cuCtxSetLimit");
  BOOST_TEST(finding.culprit_function == "guest::ChangeLimit");
}

BOOST_AUTO_TEST_CASE(library_keeps_its_name) {
  const auto leak = Hostile("LeakPush");
  // The callable is the victim: it manages contexts, too.
  const AuditFinding finding = Finding([&] {
    guest::LeakPush(other.get());
    leak(own.get());
    guest::Pop();
    guest::Pop();
  });
  BOOST_TEST(finding.kind == "leaked-push");
  BOOST_TEST(FileName(finding.culprit_object) == "libhostile.so");
  BOOST_TEST(finding.culprit_function == "hostile::LeakPush");
  BOOST_TEST(finding.victim_object == kAuditedCallable);
}

BOOST_AUTO_TEST_CASE(good_guest_has_no_finding) {
  const auto work = [&] {
    for (const CUcontext context : {own.get(), other.get()}) {
      const ContextGuard guard(context);
      BOOST_REQUIRE(guard.ok());
    }
  };
  BOOST_TEST(Findings(work).empty());
}

BOOST_AUTO_TEST_CASE(threads_of_the_callable_are_the_callables) {
  const auto change_in_thread = [](CUcontext context) {
    std::thread([=] {
      guest::LeakPush(context);
      guest::ChangeLimit();
    }).join();
  };
  BOOST_TEST(Findings([&] {
               const OwnContext made;
               change_in_thread(made.get());
             }).empty());
  const AuditFinding finding = Finding([&] { change_in_thread(own.get()); });
  BOOST_TEST(finding.kind == "changed-setting");
  BOOST_TEST(finding.culprit_object == kAuditedCallable);
}

BOOST_AUTO_TEST_CASE(same_fault_is_counted) {
  const AuditFinding finding = Finding([&] {
    for (int i = 0; i < 3; ++i) guest::LeakPush(other.get());
  });
  BOOST_TEST(finding.count == 3u);
}

BOOST_AUTO_TEST_CASE(flood_is_read_while_it_runs) {
  const AuditFinding finding = Finding([&] {
    for (int i = 0; i < 20000; ++i) {
      guest::LeakPush(other.get());
      guest::Pop();
    }
    guest::LeakPush(other.get());
  });
  BOOST_TEST(finding.count == 1u);
}

BOOST_AUTO_TEST_CASE(audits_know_nothing_of_each_other) {
  BOOST_TEST(Findings([&] { guest::LeakPush(other.get()); }).size() == 1u);
  BOOST_TEST(Findings([] {}).empty());
  guest::LeakPush(other.get());  // between audits
  BOOST_TEST(Findings([&] {
               guest::LeakPush(own.get());
               guest::Pop();
             }).empty());
  BOOST_TEST(Findings([&] { guest::Replace(own.get()); }).size() == 1u);
}

// How often the calling thread has given up its processor to wait, whatever for.
long Waits() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

BOOST_AUTO_TEST_CASE(nothing_waits_for_a_reader_between_audits) {
  BOOST_TEST(Findings([] {}).empty());
  const long before = Waits();
  for (int i = 0; i < 20000; ++i) {
    guest::LeakPush(other.get());
    guest::Pop();
  }
  // A writer to a channel that is full looks again every 5 ms, for two seconds.
  BOOST_TEST(Waits() - before < 20);
  BOOST_TEST(Findings([] {}).empty());
}

BOOST_AUTO_TEST_CASE(one_audit_at_a_time) {
  absl::Status nested, in_thread;
  BOOST_TEST(Findings([&] {
               nested = Audit([] {}).status();
               std::thread([&] { in_thread = Audit([] {}).status(); }).join();
             }).empty());
  BOOST_CHECK(nested.code() == absl::StatusCode::kFailedPrecondition);
  BOOST_CHECK(in_thread.code() == absl::StatusCode::kFailedPrecondition);
  BOOST_TEST(Findings([] {}).empty());
}

BOOST_AUTO_TEST_CASE(forked_children_are_not_seen) {
  const auto fork_and_work = Hostile("WorkInForkedChild");
  BOOST_TEST(Findings([&] { fork_and_work(own.get()); }).empty());
  BOOST_TEST(Findings([&] { guest::LeakPush(other.get()); }).size() == 1u);
}

BOOST_AUTO_TEST_CASE(exception_passes_through) {
  const auto throws = [&] {
    guest::LeakPush(other.get());
    throw std::runtime_error("of the callable");
  };
  BOOST_CHECK_EXCEPTION(
      static_cast<void>(Audit(throws)), std::runtime_error,
      [](const auto& error) { return error.what() == std::string("of the callable"); });
  BOOST_TEST(Findings([&] { guest::LeakPush(other.get()); }).size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

// Audits with a file of suppressions.
class Suppressing {
 public:
  explicit Suppressing(const std::string& text) {
    std::ofstream(file_) << text;
    setenv("CUGUEST_AUDIT_SUPPRESSIONS", file_.c_str(), 1);
  }
  ~Suppressing() {
    unsetenv("CUGUEST_AUDIT_SUPPRESSIONS");
    unlink(file_.c_str());
  }
  Suppressing(const Suppressing&) = delete;
  Suppressing& operator=(const Suppressing&) = delete;

  const std::string& file() const { return file_; }

 private:
  const std::string file_ = "/tmp/cuguest-audit-test-" + std::to_string(getpid()) + ".supp";
};

BOOST_FIXTURE_TEST_SUITE(audit_with_suppressions, Contexts)

// One that is suppressed, and one that is not.
void LeakTwice(CUcontext context) {
  Hostile("LeakPush")(context);
  guest::LeakPush(context);
}

BOOST_AUTO_TEST_CASE(suppressed_finding_is_left_out) {
  const Suppressing known("{\n known\n cuguest-audit:leaked-push\n fun:hostile::*\n}\n");
  const AuditFinding finding = Finding([&] { LeakTwice(other.get()); });
  BOOST_TEST(finding.culprit_function == "guest::LeakPush");
}

BOOST_AUTO_TEST_CASE(object_of_the_callable_is_suppressed) {
  const Suppressing known("{\n mine\n cuguest-audit:*\n obj:(audited callable)\n}\n");
  const AuditFinding finding = Finding([&] { LeakTwice(other.get()); });
  BOOST_TEST(finding.culprit_function == "hostile::LeakPush");  // the callable is its victim
}

BOOST_AUTO_TEST_CASE(error_of_the_file_has_its_line) {
  const Suppressing known("{\n known\n cuguest-audit:leaked-puhs\n ...\n}\n");
  bool was_called = false;
  const absl::Status status = Audit([&] { was_called = true; }).status();
  BOOST_TEST(!was_called);
  BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument));
  BOOST_TEST(status.message() == "CUGUEST_AUDIT_SUPPRESSIONS: " + known.file() +
                                     ":3: there is no kind of finding \"leaked-puhs\"");
}

BOOST_AUTO_TEST_CASE(file_that_is_missing) {
  const Suppressing known("");
  unlink(known.file().c_str());
  const absl::Status status = Audit([] {}).status();
  BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument));
  BOOST_TEST(status.message() ==
             "CUGUEST_AUDIT_SUPPRESSIONS: " + known.file() + ": No such file or directory");
  BOOST_TEST(setenv("CUGUEST_AUDIT_SUPPRESSIONS", "", 1) == 0);  // no file
  BOOST_TEST(Findings([] {}).empty());
}

BOOST_AUTO_TEST_SUITE_END()

// Each in a process of its own, in which nobody has called the runtime or retained a primary
// context.
BOOST_AUTO_TEST_SUITE(audit_in_a_new_process)

// Prints "KIND by CALL: CULPRIT > VICTIM" for each finding, and returns the child's exit code.
int Tell(absl::FunctionRef<void()> callable) {
  const absl::StatusOr<std::vector<AuditFinding>> findings = Audit(callable);
  if (!findings.ok()) std::printf("%s\n", findings.status().ToString().c_str());
  if (!findings.ok()) return 1;
  for (const AuditFinding& finding : *findings) {
    std::printf("%s by %s: %s %s > %s\n", finding.kind.c_str(), finding.call.c_str(),
                FileName(finding.culprit_object).c_str(), finding.culprit_function.c_str(),
                FileName(finding.victim_object).c_str());
  }
  return 0;
}

// What the child told, as lines.
std::string Told(const std::string& child, const std::string& fault) {
  const cudasim_test::Ended ended =
      cudasim_test::RunSelf({"--child=" + child}, {"CUGUEST_TEST_FAULT=" + fault});
  BOOST_TEST(ended.code == 0, ended.output);
  return ended.output;
}

// The callable: calls the fault, and reads the runtime's last error where the library leaves one.
void Fail(CUcontext host) {
  const std::string fault = std::getenv("CUGUEST_TEST_FAULT");
  Hostile(fault)(host);
  if (fault != "LeaveError") return;
  const auto get_last_error = HostileSymbol("cudaGetLastError");
  CHECK(reinterpret_cast<int (*)()>(get_last_error)() != 0);
}

CHILD(has_a_context) {
  const CUcontext own = cudasim_test::MakeContext();
  SetStack({own});
  return Tell([=] { Fail(own); });
}

CHILD(has_no_context) {
  CHECK(cuguest::Driver::GetInitialized().ok());
  return Tell([] { Fail(nullptr); });
}

BOOST_AUTO_TEST_CASE(created_primary) {
  const std::string created =
      "created-primary by cuDevicePrimaryCtxRetain: libhostile.so hostile::CreatePrimary > "
      "audit_audit_test\n";
  BOOST_TEST(Told("has_a_context", "CreatePrimary") == created);
  BOOST_TEST(Told("has_no_context", "CreatePrimary") == created);
}

BOOST_AUTO_TEST_CASE(primary_created_by_a_query) {
  const std::string by_query =
      "query-created-primary by cudaSetDevice: libhostile.so hostile::VisitDeviceZero > "
      "audit_audit_test\n";
  BOOST_TEST(Told("has_a_context", "VisitDeviceZero") ==
             by_query +
                 "replaced-context by cudaSetDevice: libhostile.so hostile::VisitDeviceZero > "
                 "audit_audit_test\n");
  BOOST_TEST(Told("has_no_context", "VisitDeviceZero") ==
             by_query +
                 "left-context by cudaSetDevice: libhostile.so hostile::VisitDeviceZero > "
                 "audit_audit_test\n");
}

CHILD(has_a_context_on_device_one) {
  CHECK(cuguest::Driver::GetInitialized().ok());
  const OwnContext own(1);
  SetStack({own.get()});
  return Tell([&] { Fail(own.get()); });
}

BOOST_AUTO_TEST_CASE(touched_device_zero, *cuguest_test::NeedsDevices(2)) {
  const std::string visit = " by cudaSetDevice: libhostile.so hostile::VisitDeviceZero > ";
  BOOST_TEST(Told("has_a_context_on_device_one", "VisitDeviceZero") ==
             "touched-device-zero" + visit + "\n" +  //
                 "query-created-primary" + visit + "audit_audit_test\n" + "replaced-context" +
                 visit + "audit_audit_test\n");
}

BOOST_AUTO_TEST_CASE(left_error) {
  const std::string left =
      "left-error by cudaSetDevice: libhostile.so hostile::LeaveError > (audited callable)\n";
  BOOST_TEST(Told("has_a_context", "LeaveError") == left);
  BOOST_TEST(Told("has_no_context", "LeaveError") == left);
}

CUcontext RetainPrimary() {
  CUcontext primary = nullptr;
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  return primary;
}

CHILD(has_a_primary_current) {
  CHECK(cuguest::Driver::GetInitialized().ok());
  const CUcontext primary = RetainPrimary();
  SetStack({primary});
  return Tell([=] { Fail(primary); });
}

CHILD(retains_a_primary) {
  CHECK(cuguest::Driver::GetInitialized().ok());
  RetainPrimary();
  return Tell([] { Fail(RetainPrimary()); });
}

BOOST_AUTO_TEST_CASE(reset_primary) {
  const std::string reset =
      "reset-primary by cuDevicePrimaryCtxReset: libhostile.so hostile::ResetPrimary > ";
  BOOST_TEST(Told("has_a_primary_current", "ResetPrimary") == reset + "audit_audit_test\n");
  BOOST_TEST(Told("retains_a_primary", "ResetPrimary") == reset + "(audited callable)\n");
}

BOOST_AUTO_TEST_CASE(over_released_primary) {
  BOOST_TEST(Told("retains_a_primary", "ReleaseTooOften") ==
             "over-released-primary by cuDevicePrimaryCtxRelease: libhostile.so "
             "hostile::ReleaseTooOften > (audited callable)\n");
}

CHILD(captures_and_calls) {
  const CUcontext own = cudasim_test::MakeContext();
  SetStack({own});
  return Tell([=] {
    CUstream stream = nullptr;
    CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    CHECK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    Fail(own);
    CUgraph graph = nullptr;
    CHECK(RAW(cuStreamEndCapture)(stream, &graph) != CUDA_SUCCESS);
  });
}

BOOST_AUTO_TEST_CASE(broke_capture) {
  BOOST_TEST(Told("captures_and_calls", "BreakCapture") ==
             "broke-capture by cuMemAlloc: libhostile.so hostile::BreakCapture > (audited "
             "callable)\n");
}

// Its other thread has the context current.
CHILD(shares_its_context) {
  const CUcontext own = cudasim_test::MakeContext();
  return Tell([=] {
    std::promise<void> has_pushed, is_over;
    std::thread user([&] {
      CHECK(RAW(cuCtxPushCurrent)(own) == CUDA_SUCCESS);
      has_pushed.set_value();
      is_over.get_future().wait();
    });
    has_pushed.get_future().wait();
    Fail(own);
    is_over.set_value();
    user.join();
  });
}

BOOST_AUTO_TEST_CASE(destroyed_context) {
  BOOST_TEST(Told("has_a_context", "DestroyContext") ==
             "destroyed-context by cuCtxDestroy: libhostile.so hostile::DestroyContext > "
             "audit_audit_test\n");
  BOOST_TEST(Told("shares_its_context", "DestroyContext") ==
             "destroyed-in-use by cuCtxDestroy: libhostile.so hostile::DestroyContext > (audited "
             "callable)\n");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(audit_that_cannot_be)

void Fails(absl::StatusCode code, const std::string& what) {
  bool was_called = false;
  const absl::Status status = Audit([&] { was_called = true; }).status();
  CHECK(!was_called);
  if (status.code() != code || status.message().find(what) == std::string::npos) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(1);
  }
}

CHILD(finds_no_collector) {
  Fails(absl::StatusCode::kNotFound, "set CUGUEST_AUDIT_LIBRARY");
  return 0;
}

BOOST_AUTO_TEST_CASE(without_a_collector) {
  const cudasim_test::Ended ended = cudasim_test::RunSelf(
      {"--child=finds_no_collector"}, {"CUGUEST_AUDIT_LIBRARY=/no/such/libcuguest-audit.so"});
  BOOST_TEST(ended.code == 0, ended.output);
}

CHILD(has_a_destroyed_context_current) {
  const CUcontext own = cudasim_test::MakeContext();
  SetStack({own});
  std::thread([=] { CHECK(RAW(cuCtxDestroy)(own) == CUDA_SUCCESS); }).join();
  Fails(absl::StatusCode::kFailedPrecondition, "the current context is destroyed");
  const CUcontext above = cudasim_test::MakeContext();
  CHECK(RAW(cuCtxPushCurrent)(above) == CUDA_SUCCESS);
  const absl::StatusOr<std::vector<AuditFinding>> findings = Audit([=] { guest::LeakPush(above); });
  CHECK(findings.ok() && findings->size() == 1);
  CUcontext popped = nullptr;
  CHECK(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS && popped == above);
  CHECK(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS && popped == above);
  CHECK(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS && popped == own);
  return 0;
}

BOOST_AUTO_TEST_CASE(under_a_destroyed_context) {
  REQUIRE_CHILD_PASSES("has_a_destroyed_context_current");
}

constexpr char kCupti[] = "CUGUEST_TEST_AUDIT_CUPTI";
bool HasCupti() { return std::getenv(kCupti) != nullptr; }

CHILD(finds_another_tool) {
  const auto subscribe = reinterpret_cast<decltype(&cudasimSubscribe)>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cudasimSubscribe"));
  CHECK(subscribe != nullptr);
  static const cudasimSubscriber tool = {CUDASIM_TOOL_VERSION, nullptr, nullptr, nullptr, nullptr};
  CHECK(subscribe(&tool) == CUDA_SUCCESS);
  Fails(absl::StatusCode::kUnavailable, "another tool has subscribed");
  Fails(absl::StatusCode::kUnavailable, "another tool has subscribed");
  CHECK(subscribe(nullptr) == CUDA_SUCCESS);
  CHECK(Audit([] {}).ok());
  return 0;
}

BOOST_AUTO_TEST_CASE(under_another_tool, *cuguest_test::OnlySim()) {
  const cudasim_test::Ended ended = cudasim_test::RunChild("finds_another_tool");
  BOOST_TEST(ended.code == 0, ended.output);
}

// On the simulation NVIDIA's CUPTI subscribes, and is told of nothing.
BOOST_AUTO_TEST_CASE(under_another_tool_where_cupti_is_installed,
                     *cuguest_test::OnlySim() *
                         cuguest_test::OnlyIf(&HasCupti, "needs the headers of CUPTI")) {
  char directory[] = "/tmp/cuguest-audit-test-XXXXXX";
  BOOST_REQUIRE(mkdtemp(directory) != nullptr);
  const std::string library = directory + std::string("/libcupti.so.13");
  BOOST_REQUIRE(symlink(std::getenv(kCupti), library.c_str()) == 0);
  const cudasim_test::Ended ended = cudasim_test::RunSelf(
      {"--child=finds_another_tool"},
      {std::string("LD_LIBRARY_PATH=") + directory + ":" + std::getenv("LD_LIBRARY_PATH"),
       "CUGUEST_TEST_CUPTI_HEARS_NOTHING=1"});
  BOOST_TEST(ended.code == 0, ended.output);
  unlink(library.c_str());
  rmdir(directory);
}

CHILD(finds_the_command) {
  Fails(absl::StatusCode::kFailedPrecondition, "without that command");
  return 0;
}

BOOST_AUTO_TEST_CASE(under_the_command) {
  const char* command = std::getenv("CUGUEST_TEST_AUDIT_COMMAND");
  BOOST_REQUIRE(command != nullptr);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string line = std::string(command) + " -q -- " + self + " --child=finds_the_command";
  BOOST_TEST(std::system(line.c_str()) == 0);
}

CHILD(has_a_directory_of_its_own) {
  CHECK(Audit([] {}).ok());
  CHECK(rmdir(std::getenv("TMPDIR")) == 0);  // nothing is left in it
  CHECK(Audit([] {}).ok());
  return 0;
}

BOOST_AUTO_TEST_CASE(nothing_is_left_in_the_file_system) {
  char directory[] = "/tmp/cuguest-audit-test-XXXXXX";
  BOOST_REQUIRE(mkdtemp(directory) != nullptr);
  const cudasim_test::Ended ended = cudasim_test::RunSelf({"--child=has_a_directory_of_its_own"},
                                                          {std::string("TMPDIR=") + directory});
  BOOST_TEST(ended.code == 0, ended.output);
}

BOOST_AUTO_TEST_SUITE_END()
