// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What does a guard do when something that the library calls changes the context stack?
//
// A host with the stack [X] [A]< (A is current) calls a library, which calls a third party, which
// changes the stack: in six ways, each while the library works in its caller's context A and while
// it works in a context B of its own. The library is written in three ways: with a push and a pop,
// with get and set, and with a ContextGuard. The pictures show the stack that the host has
// afterwards.
//
//   2. The callee leaves a push behind
//
//                       in A, its caller's context    in B, its own
//      before           [X] [A]<                      [X] [A]<
//      push, pop        [X] [A] [A]<  wrong depth     [X] [A] [B]<  WRONG CONTEXT
//      get, set         [X] [A] [A]<  wrong depth     [X] [B] [A]<  wrong depth
//      ContextGuard     [X] [A]<      as it was       [X] [A]<      as it was
//           both: left a push behind, repaired by inference
//
// Two faults are beyond what the default mode can see or repair (context_guard.h). There the
// example also shows kAlwaysPush and ExactGuard, until one of them repairs the stack.

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/exact_guard.h"
#include "cuguest/incident_listener.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/guest/hostile_callee/callee.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/saxpy.h"

// The library, in each way. `context` is where it works: its caller's, or one of its own.
namespace guest {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Driver;
using cuguest::ExactGuard;
using cuguest::GuardMode;
using Callee = std::function<void()>;

// Work in the current context: true if y = 2 * x + y is right.
absl::StatusOr<bool> Saxpy() {
  using Numbers = std::vector<float>;
  const ContextRef here = ContextRef::Current();
  CUGUEST_ASSIGN_OR_RETURN(
      const cuguest::Module module,
      cuguest::Module::Load({cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size},
                            "saxpy"));
  CUGUEST_ASSIGN_OR_RETURN(const cuguest::Kernel kernel, module.GetKernel("saxpy"));
  CUGUEST_ASSIGN_OR_RETURN(const cuguest::Stream stream, cuguest::Stream::Create(here));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> x,
                           DeviceBuffer<float>::CopyOf(here, Numbers(256, 3.0F)));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> y,
                           DeviceBuffer<float>::CopyOf(here, Numbers(256, 1.0F)));
  absl::Status status = cuguest::LaunchForElements(kernel, 256, stream.ref(), 256U, 2.0F,
                                                   DevicePtr(x.view()), DevicePtr(y.view()));
  if (status.ok()) status = stream.ref().Synchronize();
  if (!status.ok()) return status;
  const absl::StatusOr<Numbers> result = cuguest::Download(y.view());
  CUGUEST_RETURN_IF_ERROR(result);
  return *result == Numbers(256, 7.0F);
}

// What the library does in each way: its own work, and the call.
void Work(const Callee& callee) {
  const absl::StatusOr<bool> right = Saxpy();
  if (CHECK_OK(right.status())) CHECK(*right);
  callee();
}

// As in the programming guide: push, work, pop.
void PushPop(const Driver& driver, CUcontext context, const Callee& callee) {
  driver.CtxPushCurrent(context);
  Work(callee);
  CUcontext popped = nullptr;
  driver.CtxPopCurrent(&popped);
}

// As guards with cudaGetDevice and cudaSetDevice do: get, set, work, set back.
void GetAndSet(const Driver& driver, CUcontext context, const Callee& callee) {
  CUcontext before = nullptr;
  driver.CtxGetCurrent(&before);
  driver.CtxSetCurrent(context);
  Work(callee);
  driver.CtxSetCurrent(before);
}

void Guarded(CUcontext context, const Callee& callee, GuardMode mode) {
  const ContextGuard guard(context, mode);
  if (CHECK(guard.ok())) Work(callee);
}

void GuardedExactly(CUcontext context, const Callee& callee) {
  const ExactGuard guard(context);
  if (CHECK(guard.ok())) Work(callee);
}

// A library that works on after the call makes its context current again.
absl::Status WorkAgainAfterwards(CUcontext context, const Callee& callee,
                                 const std::function<void(const char*)>& trace) {
  ContextGuard guard(context);
  CUGUEST_RETURN_IF_ERROR(guard);
  trace("inside");
  Work(callee);
  trace("when the callee returned");
  guard.Reassert();
  CUGUEST_RETURN_IF_ERROR(guard);
  trace("after guard.Reassert()");
  const absl::StatusOr<bool> right = Saxpy();
  return right.ok() && !*right ? absl::InternalError("wrong numbers") : right.status();
}

}  // namespace guest

// The program that calls the library, and then draws its stack.
namespace host {

using callee::Fault;
using cuguest::Device;
using cuguest::Driver;
using cuguest::GuardMode;
using cuguest::Incident;
using cuguest::PrimaryContext;
using cuguest::testing::UndisturbedScope;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;

// How the library is written, and its name in the tables.
enum class Way { kPushPop, kGetAndSet, kGuard, kAlwaysPush, kExact };
constexpr Way kWays[] = {Way::kPushPop, Way::kGetAndSet, Way::kGuard, Way::kAlwaysPush,
                         Way::kExact};
constexpr const char* kWayNames[] = {"push, pop", "get, set", "ContextGuard", "  kAlwaysPush",
                                     "ExactGuard"};

// The stack that the host has afterwards, for each way but ExactGuard, which always leaves the best
// possible one.
struct Left {
  const char* push_pop;
  const char* get_and_set;
  const char* guard;
  const char* always_push;
};

struct Row {
  Fault fault;
  const char* title;
  Left in_a;  // when the library works in A, its caller's context
  Left in_b;  // when it works in B, its own
};

constexpr char kWhole[] = "[X] [A]<";
constexpr char kNotRun[] = "(not run)";  // sets a destroyed handle, which is undefined

constexpr Row kRows[] = {
    {Fault::kReplacesTop,
     "The callee replaces the current context, as cudaSetDevice does",
     {kWhole, kWhole, kWhole, kWhole},
     {kWhole, kWhole, kWhole, kWhole}},
    {Fault::kLeaksPush,
     "The callee leaves a push behind",
     {"[X] [A] [A]<", "[X] [A] [A]<", kWhole, kWhole},
     {"[X] [A] [B]<", "[X] [B] [A]<", kWhole, kWhole}},
    {Fault::kLeaksLibrarysPush,
     "The callee leaves a push of the library's own context behind",
     {"[X] [A] [A]<", "[X] [A] [A]<", "[X] [A] [A]<", "[X] [A] [A]<"},
     {"[X] [A] [B]<", "[X] [B] [A]<", kWhole, kWhole}},
    {Fault::kPopsOnce,
     "The callee pops one entry too many",
     {"[X]<", "[A]<", kWhole, kWhole},
     {"[X]<", "[A]<", kWhole, kWhole}},
    {Fault::kPopsTwice,
     "The callee pops two entries too many",
     {"(empty)", "[A]<", "[A]<", kWhole},
     {"(empty)", "[A]<", kWhole, kWhole}},
    {Fault::kDestroysContext,
     "The callee destroys the context that the library works in",
     {"[X]<", kNotRun, "[X]<", "[X]<"},
     {"[X]<", "[A]<", kWhole, kWhole}},
};

// The best possible stack: a destroyed context cannot be restored.
const char* Best(Fault fault, bool in_a) {
  return fault == Fault::kDestroysContext && in_a ? "[X]<" : kWhole;
}

const char* Expected(const Row& row, Way way, bool in_a) {
  const Left& left = in_a ? row.in_a : row.in_b;
  switch (way) {
    case Way::kPushPop:
      return left.push_pop;
    case Way::kGetAndSet:
      return left.get_and_set;
    case Way::kGuard:
      return left.guard;
    case Way::kAlwaysPush:
      return left.always_push;
    case Way::kExact:
      break;
  }
  return Best(row.fault, in_a);
}

// "[A]<" of "[X] [A]<".
std::string Top(const std::string& picture) {
  const std::size_t bracket = picture.rfind('[');
  return bracket == std::string::npos ? picture : picture.substr(bracket);
}

const char* Verdict(const std::string& left, const std::string& best) {
  if (left == kNotRun) return "undefined";
  if (left == best) return best == kWhole ? "as it was" : "best possible";
  return Top(left) == Top(best) ? "wrong depth" : "WRONG CONTEXT";
}

// The incidents of one call.
struct Report {
  int count;
  cuguest::Incident::Kind kind;  // of the last one, as the rest
  cuguest::Incident::Repair repair;
  const char* file;
  int line;

  [[nodiscard]] std::string ToString() const {
    if (count == 0) return "no incident";
    return std::string(cuguest::Name(kind)) + ", " + cuguest::Name(repair);
  }
};
Report report;

// Runs inside the guard's destructor.
void TakeReport(const Incident& incident, void*) noexcept {
  report = {report.count + 1, incident.kind, incident.repair, incident.file, incident.line};
}

// The contexts of the host.
struct Contexts {
  HostContext x, a, b, c;
  PrimaryContext p;

  static absl::StatusOr<Contexts> Create(const Driver& driver, Device device);
  [[nodiscard]] Cast Names() const;
};

absl::StatusOr<Contexts> Contexts::Create(const Driver& driver, Device device) {
  std::vector<HostContext> made;
  while (made.size() < 4) {
    absl::StatusOr<HostContext> context = HostContext::Create(driver, device);
    CUGUEST_RETURN_IF_ERROR(context);
    made.push_back(*std::move(context));
  }
  PrimaryContext p = PrimaryContext::Retain(device);
  CUGUEST_RETURN_IF_ERROR(p);
  return Contexts{std::move(made[0]), std::move(made[1]), std::move(made[2]), std::move(made[3]),
                  std::move(p)};
}

Cast Contexts::Names() const {
  Cast cast;
  cast.Name("X", x.get());
  cast.Name("A", a.get());
  cast.Name("B", b.get());
  cast.Name("C", c.get());
  cast.Name("P", p.get());
  return cast;
}

// What one call of the library left.
struct Outcome {
  std::string picture = kNotRun;
  std::string best;
  std::string reported;  // by the guard

  [[nodiscard]] bool good() const { return picture == best; }
  [[nodiscard]] std::string ToString() const {
    const std::string padding(picture.size() < 14 ? 14 - picture.size() : 0, ' ');
    return picture + padding + Verdict(picture, best);
  }
};

// Calls the library in every way, with every fault, and draws the stack afterwards.
class Scenes {
 public:
  Scenes(const Driver& driver, Device device, callee::MisbehaveFunction misbehave,
         Contexts* contexts)
      : driver_(driver),
        device_(device),
        misbehave_(misbehave),
        contexts_(*contexts),
        stack_(driver, {}) {}

  void Show(const Row& row);
  void ShowReassert();
  void ShowTally() const;

 private:
  static constexpr int kCalls = 2 * static_cast<int>(std::size(kRows));  // in each way

  Outcome Try(const Row& row, Way way, bool in_a);
  void CallGuest(Way way, CUcontext context, const guest::Callee& callee) const;
  void Rebuild(HostContext* destroyed);

  const Driver& driver_;
  const Device device_;
  const callee::MisbehaveFunction misbehave_;
  Contexts& contexts_;
  HostStack stack_;
  int good_[std::size(kWays)] = {};  // calls after which the stack was the best possible one
};

void Scenes::CallGuest(Way way, CUcontext context, const guest::Callee& callee) const {
  switch (way) {
    case Way::kPushPop:
      return guest::PushPop(driver_, context, callee);
    case Way::kGetAndSet:
      return guest::GetAndSet(driver_, context, callee);
    case Way::kGuard:
      return guest::Guarded(context, callee, GuardMode::kElide);
    case Way::kAlwaysPush:
      return guest::Guarded(context, callee, GuardMode::kAlwaysPush);
    case Way::kExact:
      return guest::GuardedExactly(context, callee);
  }
}

// Replaces a context that the callee destroyed.
void Scenes::Rebuild(HostContext* destroyed) {
  stack_.Set({});
  destroyed->Leak();
  absl::StatusOr<HostContext> anew = HostContext::Create(driver_, device_);
  if (CHECK_OK(anew.status())) *destroyed = *std::move(anew);
}

Outcome Scenes::Try(const Row& row, Way way, bool in_a) {
  Outcome outcome;
  outcome.best = Best(row.fault, in_a);
  const std::string expected = Expected(row, way, in_a);
  if (expected == kNotRun) return outcome;

  HostContext& target = in_a ? contexts_.a : contexts_.b;
  const callee::Contexts contexts{contexts_.c.get(), contexts_.p.get(), target.get()};
  stack_.Set({contexts_.x.get(), contexts_.a.get()});
  report = Report();
  CallGuest(way, target.get(), [&] { CHECK(misbehave_(driver_, row.fault, contexts)); });
  outcome.picture = contexts_.Names().Draw();
  outcome.reported = report.ToString();
  if (row.fault == Fault::kDestroysContext) Rebuild(&target);

  CHECK(outcome.picture == expected);
  CHECK(report.count <= 1);
  if (way == Way::kExact) CHECK(report.count == 1);
  if (outcome.good()) ++good_[static_cast<int>(way)];
  return outcome;
}

void PrintReport(const char* where, const std::string& reported) {
  std::printf("        %s %s\n", where, reported.c_str());
}

void PrintReports(const Outcome& in_a, const Outcome& in_b) {
  if (in_a.reported == in_b.reported) return PrintReport("both:", in_a.reported);
  PrintReport("in A:", in_a.reported);
  PrintReport("in B:", in_b.reported);
}

void PrintLine(const char* label, const std::string& in_a, const std::string& in_b) {
  std::printf("   %-16s %-29s %s\n", label, in_a.c_str(), in_b.c_str());
}

// The stricter modes are always tested, and shown where the one before was not enough.
void Scenes::Show(const Row& row) {
  PrintScene(row.title);
  PrintLine("", "in A, its caller's context", "in B, its own");
  PrintLine("before", kWhole, kWhole);
  bool enough = false;
  for (const Way way : kWays) {
    const Outcome in_a = Try(row, way, /*in_a=*/true);
    const Outcome in_b = Try(row, way, /*in_a=*/false);
    if (enough) continue;
    PrintLine(kWayNames[static_cast<int>(way)], in_a.ToString(), in_b.ToString());
    if (way < Way::kGuard) continue;
    PrintReports(in_a, in_b);
    enough = in_a.good() && in_b.good();
  }
}

void Scenes::ShowReassert() {
  PrintScene("A library that works on after such a callee calls guard.Reassert()");
  stack_.Set({contexts_.x.get(), contexts_.a.get()});
  report = Report();
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const Cast cast = contexts_.Names();
  const callee::Contexts contexts{contexts_.c.get(), contexts_.p.get(), contexts_.b.get()};
  PrintRow("the host's stack", cast.Draw());
  CHECK_OK(guest::WorkAgainAfterwards(
      contexts_.b.get(), [&] { CHECK(misbehave_(driver_, Fault::kReplacesTop, contexts)); },
      [&](const char* where) { PrintRow(where, cast.Draw()); }));
  PrintRow("when the library returned", cast.Draw(), "its numbers are right");
  CHECK(cast.Draw() == kWhole);
  CHECK(report.count == 1);
  std::printf("\n");
  support::PrintParagraph("reported: " + std::string(support::BaseName(report.file)) + ":" +
                          std::to_string(report.line) + ": a callee " + report.ToString());
}

void Scenes::ShowTally() const {
  PrintScene("Calls after which the host's stack was the best possible one");
  for (const Way way : kWays) {
    std::printf("   %-16s %2d of %d\n", kWayNames[static_cast<int>(way)],
                good_[static_cast<int>(way)], kCalls);
  }
  CHECK(good_[static_cast<int>(Way::kExact)] == kCalls);
}

// The callee stays loaded, as a library's dependency does.
callee::MisbehaveFunction LoadCallee() {
  void* library =
      dlopen(support::Beside("hostile_callee_library.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  return reinterpret_cast<callee::MisbehaveFunction>(dlsym(library, CALLEE_ENTRY));
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  const callee::MisbehaveFunction misbehave = LoadCallee();
  if (misbehave == nullptr) return absl::NotFoundError(dlerror());
  CUGUEST_ASSIGN_OR_RETURN(Contexts contexts, Contexts::Create(driver, device));
  std::printf(
      "\n   The host's stack is [X] [A]<, read from the bottom up: A is current.\n"
      "   C is the callee's context, P the device's primary context.\n");

  const cuguest::IncidentListener listener(&TakeReport);
  Scenes scenes(driver, device, misbehave, &contexts);
  for (const Row& row : kRows) scenes.Show(row);
  scenes.ShowReassert();
  scenes.ShowTally();
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "What does a guard do when something that the library calls changes the context stack?",
      &host::Demonstrate);
}
