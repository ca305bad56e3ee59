// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/faults/walk.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <new>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "cudasim/sim_runtime.h"
#include "cuguest/error.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/primary_context.h"
#include "test/faults/host_memory.h"
#include "test/faults/surroundings.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

namespace cuguest_faults {
namespace {

using cudasim::Sim;
using cudasim::SimLive;
using cudasim::SimRuntime;

// What any call may return, and which says nothing but that it failed.
constexpr CUresult kFailures[] = {CUDA_ERROR_OPERATING_SYSTEM, CUDA_ERROR_OUT_OF_MEMORY,
                                  CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_UNKNOWN};

// What says something of the world that is not so here: that an object is gone, say, or that the
// process is ending. A library that believes it may leave an object to the driver, or go on; but
// the stack is the caller's.
constexpr CUresult kClaims[] = {
    CUDA_ERROR_INVALID_VALUE,
    CUDA_ERROR_NOT_INITIALIZED,
    CUDA_ERROR_DEINITIALIZED,
    CUDA_ERROR_INVALID_CONTEXT,
    CUDA_ERROR_INVALID_HANDLE,
    CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUDA_ERROR_NOT_PERMITTED,
    CUDA_ERROR_NOT_SUPPORTED,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
};

// The calls that end something, and what is then left where they are refused.
struct Ending {
  const char* entry;
  size_t SimLive::*kind;
};
constexpr Ending kEndings[] = {
    {"cuCtxDestroy", &SimLive::contexts},
    {"cuDevicePrimaryCtxRelease", &SimLive::primary_references},
    {"cuGreenCtxDestroy", &SimLive::green_contexts},
    {"cuGreenCtxDestroy", &SimLive::primary_references},
    {"cuMemFree", &SimLive::allocations},
    {"cuMemFreeAsync", &SimLive::allocations},
    {"cuMemFreeHost", &SimLive::allocations},
    {"cuIpcCloseMemHandle", &SimLive::allocations},
    {"cuMemHostUnregister", &SimLive::allocations},
    {"cudaFree", &SimLive::allocations},
    {"cuStreamDestroy", &SimLive::streams},
    {"cuStreamEndCapture", &SimLive::graphs},
    {"cuEventDestroy", &SimLive::events},
    {"cuModuleUnload", &SimLive::modules},
    {"cuLibraryUnload", &SimLive::libraries},
    {"cuLibraryUnload", &SimLive::modules},
    {"cuGraphDestroy", &SimLive::graphs},
    {"cuGraphExecDestroy", &SimLive::graphs},
    {"cuArrayDestroy", &SimLive::arrays},
    {"cudaFreeArray", &SimLive::arrays},
    {"cuTexObjectDestroy", &SimLive::textures},
    {"cuSurfObjectDestroy", &SimLive::textures},
    {"cuLinkDestroy", &SimLive::link_states},
};

// The calls by which a scope finds its way to the caller's stack, or the last error, or an entry:
// where one of them fails there is another way, and nobody need know.
constexpr const char* kHaveAnotherWay[] = {
    "cuCtxGetCurrent",     "cuCtxPushCurrent", "cuCtxPopCurrent",
    "cuCtxSetCurrent",     "cuCtxGetId",       "cuGetProcAddress",
    "cudaPeekAtLastError", "cudaGetLastError", "cudaRuntimeGetVersion",
    "cuDriverGetVersion",  "cuInit",
    "cuGetExportTable",  // of nvJitLink, which links without a driver
};

struct Kind {
  const char* name;
  size_t SimLive::*kind;
};
#define KIND(name) \
  { #name, &SimLive::name }
constexpr Kind kKinds[] = {
    KIND(contexts),       KIND(primary_references),
    KIND(allocations),    KIND(streams),
    KIND(events),         KIND(modules),
    KIND(green_contexts), KIND(graphs),
    KIND(pools),          KIND(virtual_memory),
    KIND(arrays),         KIND(textures),
    KIND(libraries),      KIND(link_states),
};
#undef KIND

// Of this thread, while it is not null.
thread_local MadeCalls* t_log = nullptr;

void LogDriverCall(const char* entry) {
  if (t_log != nullptr) t_log->push_back({false, entry});
}
void LogRuntimeCall(const char* entry) {
  if (t_log != nullptr) t_log->push_back({true, entry});
}

bool IsSame(const MadeCall& a, const MadeCall& b) {
  return a.of_runtime == b.of_runtime && std::strcmp(a.entry, b.entry) == 0;
}

// Lets the calls at the places of `faults` fail, where the calls until then are those of `calls`.
void Arm(const MadeCalls& calls, const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    const MadeCall& made = calls[fault.place];
    const auto is_same = [&made](const MadeCall& other) { return IsSame(made, other); };
    const auto before = std::count_if(calls.begin(), calls.begin() + fault.place, is_same);
    const auto nth = static_cast<unsigned>(before) + 1;
    if (made.of_runtime) {
      SimRuntime::FailCall(made.entry, nth, static_cast<cudaError_t>(fault.code), false);
    } else {
      Sim::FailCall(made.entry, nth, static_cast<CUresult>(fault.code), false);
    }
  }
}

// A reference that the driver did not take back is nobody's, and so is a capture that it did not
// end.
void CleanUp(const Things& things, const SimLive& before,
             const std::function<void()>& end_context) {
  const SimLive after = Sim::Live();
  if (after.contexts + after.green_contexts > before.contexts + before.green_contexts) {
    if (end_context) end_context();
  }
  while (Sim::Live().primary_references > before.primary_references &&
         Sim::Live().green_contexts == before.green_contexts) {
    OK(RAW(cuDevicePrimaryCtxRelease)(0));
  }
  auto capture = CU_STREAM_CAPTURE_STATUS_NONE;
  OK(RAW(cuStreamIsCapturing)(things.stream.get(), &capture));
  if (capture != CU_STREAM_CAPTURE_STATUS_NONE) {
    CUgraph graph = nullptr;
    RAW(cuStreamEndCapture)(things.stream.get(), &graph);
    if (graph != nullptr) OK(RAW(cuGraphDestroy)(graph));
  }
  auto mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  OK(RAW(cuThreadExchangeStreamCaptureMode)(&mode));
  static_cast<void>(cudaGetLastError());
}

// Each begins as a thread on which cuguest has seen nothing current, so that it makes the same
// calls. `make` is the operation, until what it gave is gone.
template <typename Make>
Played PlayAs(const Things& things, const Make& make) {
  Played played;
  cuguest_test::BeginCount();
  played.before = Sim::Live();
  const Surroundings before;
  const std::function<void()> end_context = make(&played);
  Sim::ClearFaults();
  SimRuntime::ClearFaults();
  { const cuguest::PrimaryContext gives_back; }  // what a destructor was not permitted to
  played.after = Sim::Live();
  played.incidents = cuguest_test::TakeIncidents();
  CleanUp(things, played.before, end_context);
  played.difference = before.Difference(Surroundings());
  return played;
}

Played Play(const Call& operation, const Things& things, const MadeCalls& calls,
            const std::vector<Fault>& faults) {
  return PlayAs(things, [&](Played* played) {
    Arm(calls, faults);
    t_log = &played->calls;
    Outcome outcome = operation.make(things);
    played->returned_at = played->calls.size();
    outcome.object.reset();
    t_log = nullptr;
    played->status = std::move(outcome.status);
    return outcome.end_context;
  });
}

// The operation, if memory is refused where nothing can be thrown.
const char* g_playing = nullptr;
[[noreturn]] void Terminate() {
  std::fprintf(stderr, "%s: ended the process, without host memory\n", g_playing);
  std::abort();
}

// With the `failing`th request for host memory refused; nothing if there were not as many.
std::optional<Played> PlayWithoutMemory(const Call& operation, const Things& things,
                                        size_t failing) {
  bool has_failed = false;
  const cuguest_test::Unrecorded unrecorded;
  g_playing = operation.names;
  const std::terminate_handler terminate = std::set_terminate(&Terminate);
  Played played = PlayAs(things, [&](Played* into) -> std::function<void()> {
    Outcome outcome(absl::OkStatus());
    try {
      const HostMemoryFault fault(failing);
      outcome = operation.make(things);
      outcome.object.reset();
      has_failed = fault.has_failed();
    } catch (const std::bad_alloc& thrown) {
      has_failed = true;
      outcome = Outcome(absl::ResourceExhaustedError(thrown.what()));
    }
    into->status = std::move(outcome.status);
    return outcome.end_context;
  });
  std::set_terminate(terminate);
  if (!has_failed) return std::nullopt;
  return played;
}

bool Ends(const MadeCall& call, size_t SimLive::*kind) {
  return std::any_of(std::begin(kEndings), std::end(kEndings), [&](const Ending& ending) {
    return ending.kind == kind && std::strcmp(ending.entry, call.entry) == 0;
  });
}

// What they end, its own destructor ends.
bool IsInDestructor(const Call& operation, const Played& played, const Fault& fault) {
  return fault.place >= played.returned_at || std::strstr(operation.names, "PerContext") != nullptr;
}

// A shared context is given up, whatever comes of destroying it, and the caller is told.
bool GivesUp(const Call& operation) {
  return std::strstr(operation.names, "SharedContext::Release") != nullptr ||
         std::strstr(operation.names, "_detach") != nullptr;
}

// A destructor drops what came of ending its object; a caller that asks for the end is told.
constexpr const char* kAsksToEnd[] = {"::Release", "::Free", "_release", "_detach"};

bool MayBeDropped(const Call& operation, const Played& played, const Fault& fault) {
  const bool asks =
      std::any_of(std::begin(kAsksToEnd), std::end(kAsksToEnd),
                  [&](const char* name) { return std::strstr(operation.names, name) != nullptr; });
  return !asks && std::any_of(std::begin(kEndings), std::end(kEndings), [&](const Ending& ending) {
    return std::strcmp(ending.entry, played.calls[fault.place].entry) == 0;
  });
}

bool HasAnotherWay(const Call& operation, const Played& played, const std::vector<Fault>& faults) {
  return std::all_of(faults.begin(), faults.end(), [&](const Fault& fault) {
    return IsInDestructor(operation, played, fault) || MayBeDropped(operation, played, fault) ||
           std::any_of(std::begin(kHaveAnotherWay), std::end(kHaveAnotherWay),
                       [&](const char* entry) {
                         return std::strcmp(entry, played.calls[fault.place].entry) == 0;
                       });
  });
}

// Of more than there was, what the refused endings do not account for. What a destructor could not
// do, its owner is not told, and the object is left to the driver; nor could an operation that was
// refused, and then refused what it does about it.
std::string Leaked(const Call& operation, const Played& clean, const Played& played,
                   const std::vector<Fault>& faults) {
  std::ostringstream text;
  for (const Kind& one : kKinds) {
    const auto of = one.kind;
    const auto ends = [of](const MadeCall& call) { return Ends(call, of); };
    size_t refused = 0;
    for (const Fault& fault : faults) {
      const bool is_dropped =
          faults.size() > 1 || IsInDestructor(operation, played, fault) || GivesUp(operation);
      refused += is_dropped ? std::count_if(clean.calls.begin(), clean.calls.end(), ends)
                            : ends(played.calls[fault.place]);
    }
    const size_t before = played.before.*of;
    const size_t after = played.after.*of;
    const size_t kept = clean.after.*of - clean.before.*of;
    if (after < before || after > before + kept + refused) {
      text << one.name << ": " << before << " became " << after << "\n";
    }
  }
  return text.str();
}

std::string CodeText(const MadeCall& call, int code) {
  return call.of_runtime ? cudaGetErrorName(static_cast<cudaError_t>(code))
                         : cuguest::ErrorName(static_cast<CUresult>(code));
}

// Whether the status says with which code the call failed: as the driver's, or as the runtime's
// that made the call, which may make another of it. Not of what is no failure but an answer: an
// entry that cannot be found, a question that an enumerator answers.
bool Names(const absl::Status& status, const MadeCall& call, int code) {
  constexpr const char* kAnswers[] = {"cuGetProcAddress", "cudaPeekAtLastError",
                                      "cudaRuntimeGetVersion"};
  const bool is_answer =
      std::any_of(std::begin(kAnswers), std::end(kAnswers),
                  [&call](const char* entry) { return std::strcmp(call.entry, entry) == 0; });
  return is_answer || status.message() == "a value is not what it should be" ||
         absl::StrContains(status.message(), CodeText(call, code)) ||
         (!call.of_runtime && absl::StrContains(status.message(), "cudaError"));
}

bool IsFailure(const Fault& fault) {
  return std::find(std::begin(kFailures), std::end(kFailures), fault.code) != std::end(kFailures);
}

std::vector<CUresult> AllCodes() {
  std::vector<CUresult> codes(std::begin(kFailures), std::end(kFailures));
  codes.insert(codes.end(), std::begin(kClaims), std::end(kClaims));
  return codes;
}

}  // namespace

bool Walk::Check(const Subject& subject, const Played& played, const std::vector<Fault>& faults) {
  std::string wrong;
  if (faults.back().place >= played.calls.size()) {
    wrong = "the call was not made again";
  } else {
    const bool is_told = !played.status.ok() || !played.incidents.empty();
    // Where the driver refuses the repair as well, another stack is left, and reported.
    if (faults.size() < 2 || !is_told) wrong = played.difference;
    if (std::all_of(faults.begin(), faults.end(), IsFailure)) {
      wrong += Leaked(subject.operation, subject.clean, played, faults);
      const bool is_named = played.status.ok() || !subject.clean.status.ok() || faults.size() > 1 ||
                            Names(played.status, played.calls[faults[0].place], faults[0].code);
      if (!is_named) wrong += "the failing call's code is not named";
      if (!is_told && !HasAnotherWay(subject.operation, played, faults)) wrong += "nobody was told";
    }
  }
  if (!played.difference.empty()) subject.set_stack();
  const Played again = Play(subject.operation, subject.things, {}, {});
  if (again.status.code() != subject.clean.status.code()) {
    wrong += "; afterwards it says " + again.status.ToString();
  }
  if (wrong.empty()) return true;
  ++broken_;
  std::ostringstream text;
  text << subject.operation.names << ", " << subject.state << ": ";
  for (const Fault& fault : faults) {
    const MadeCall& call = fault.place < played.calls.size() ? played.calls[fault.place]
                                                             : subject.clean.calls[fault.place];
    text << call.entry << " at " << fault.place << " fails with " << CodeText(call, fault.code)
         << "; ";
  }
  text << wrong << " [" << played.status.ToString() << "]";
  BOOST_ERROR(text.str());
  subject.set_stack();
  return false;
}

void Walk::OverSecond(const Subject& subject, const Fault& first, const Played& after_first) {
  for (size_t place = first.place + 1; place < after_first.calls.size(); ++place) {
    // A green context that nobody knows any more holds the primary one, and no reset works.
    if (std::strcmp(after_first.calls[place].entry, "cuGreenCtxDestroy") == 0) continue;
    if (++second_ % one_second_of_ != 0) continue;
    const CUresult code = kFailures[pairs_ % std::size(kFailures)];
    const std::vector<Fault> faults = {first, {place, code}};
    ++pairs_;
    Check(subject, Play(subject.operation, subject.things, after_first.calls, faults), faults);
  }
}

std::vector<CUresult> Walk::CodesInTurn() {
  ++turn_;
  const CUresult failure = kFailures[turn_ % std::size(kFailures)];
  if (depth_ == Depth::kSingles) return {failure};
  return {failure, kClaims[turn_ % std::size(kClaims)]};
}

void Walk::Over(const Call& operation, const Things& things, const char* state,
                const std::function<void()>& set_stack) {
  ++operations_;
  set_stack();
  Sim::OnEveryCall(&LogDriverCall);
  SimRuntime::OnEveryCall(&LogRuntimeCall);
  Play(operation, things, {}, {});  // what is done but once is done
  const Subject subject{operation, things, state, set_stack, Play(operation, things, {}, {})};
  BOOST_TEST(subject.clean.difference == "", operation.names << subject.clean.difference);
  if (operation.expected.has_value()) {
    BOOST_TEST((subject.clean.status.code() == *operation.expected),
               operation.names << ", " << state << ": " << subject.clean.status.ToString());
  }
  if (depth_ != Depth::kHostMemory) OverCalls(subject);
  Sim::OnEveryCall(nullptr);
  SimRuntime::OnEveryCall(nullptr);
  if (depth_ == Depth::kHostMemory) OverHostMemory(subject);
}

void Walk::OverCalls(const Subject& subject) {
  for (size_t place = 0; place < subject.clean.calls.size(); ++place) {
    const std::vector<CUresult> in_turn = CodesInTurn();
    for (const CUresult code : depth_ == Depth::kPairs ? AllCodes() : in_turn) {
      const Fault fault{place, code};
      ++singles_;
      const Played played = Play(subject.operation, subject.things, subject.clean.calls, {fault});
      const bool is_in_turn = std::find(in_turn.begin(), in_turn.end(), code) != in_turn.end();
      if (Check(subject, played, {fault}) && depth_ == Depth::kPairs && is_in_turn) {
        OverSecond(subject, fault, played);
      }
    }
  }
}

// Whether memory is refused by an exception or in a status, there is nothing that was made and has
// no owner.
void Walk::OverHostMemory(const Subject& subject) {
  for (size_t failing = 1;; ++failing) {
    const std::optional<Played> played =
        PlayWithoutMemory(subject.operation, subject.things, failing);
    if (!played.has_value()) return;
    ++allocations_;
    std::string wrong = played->difference;
    wrong += Leaked(subject.operation, subject.clean, *played, {});
    if (played->status.code() != subject.clean.status.code() &&
        !absl::IsResourceExhausted(played->status)) {
      wrong += "it says " + played->status.ToString();
    }
    if (!played->difference.empty()) subject.set_stack();
    const Played again = Play(subject.operation, subject.things, {}, {});
    if (again.status.code() != subject.clean.status.code()) {
      wrong += "; afterwards it says " + again.status.ToString();
    }
    if (wrong.empty()) continue;
    ++broken_;
    BOOST_ERROR(subject.operation.names << ", " << subject.state << ": request " << failing
                                        << " for host memory is refused; " << wrong);
    subject.set_stack();
  }
}

}  // namespace cuguest_faults
