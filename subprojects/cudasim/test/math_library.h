// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the facts of cuBLAS, cuFFT, cuSOLVER and cuSPARSE have in common. They say what these
// libraries do to contexts and captures, as measured with those of CUDA 13.0 on an NVIDIA
// H100, driver 580.159.04; the simulated libraries must do the same.
//
// A library is tested through a class like this, whose calls return the library's status, 0
// for success:
//
//   struct Blas {
//     static constexpr int kDeadContext;    // Create() with a destroyed context current
//     static constexpr int kRefused;        // Create() where a capture forbids it
//     static constexpr int kElsewhere;      // Run() on a stream of another context
//     static constexpr int kImplicit;       // Run() on stream 0, a blocking stream capturing
//     static constexpr int kForkedCreate, kForkedRun;
//     static constexpr bool kCreateBinds, kRunBinds, kDestroyBinds;
//                          // with nothing current it leaves the primary context so
//     int Create();        // without a handle if that fails
//     int SetStream(CUstream stream);
//     int Run();
//     int Destroy();
//     void Fill();         // makes the data, in the current context
//     void Clear();        // the result
//     bool IsRight();      // the result, after all work of the data's context
//   };

#ifndef CUDASIM_TEST_MATH_LIBRARY_H_
#define CUDASIM_TEST_MATH_LIBRARY_H_

#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "test/busy.h"
#include "test/capture.h"
#include "test/support/child.h"

#define FINE(call) BOOST_CHECK_EQUAL((call), 0)

namespace cudasim_facts {

// Numbers in device memory of the context that was current when they were made. Nothing is
// checked but by what is read: children have them, too.
template <typename T>
class Values {
 public:
  explicit Values(const std::vector<T>& values) : size_(values.size()) {
    RAW(cuCtxGetCurrent)(&context_);
    RAW(cuMemAlloc)(&at_, size_ * sizeof(T));
    Write(values);
  }
  ~Values() {
    if (at_ != 0) RAW(cuMemFree)(at_);
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  // Their context is over.
  void GiveUp() { at_ = 0; }

  T* get() const { return reinterpret_cast<T*>(at_); }
  void Write(const std::vector<T>& values) {
    Inside([&] { RAW(cuMemcpyHtoD)(at_, values.data(), size_ * sizeof(T)); });
  }
  std::vector<T> Read() const {
    std::vector<T> values(size_);
    Inside([&] { RAW(cuMemcpyDtoH)(values.data(), at_, size_ * sizeof(T)); });
    return values;
  }

 private:
  template <typename Function>
  void Inside(const Function& function) const {
    RAW(cuCtxPushCurrent)(context_);
    RAW(cuCtxSynchronize)();
    function();
    RAW(cuCtxSynchronize)();
    RAW(cuCtxPopCurrent)(nullptr);
  }

  size_t size_;
  CUcontext context_ = nullptr;
  CUdeviceptr at_ = 0;
};

// A handle of the guest's context, with its data, that has done its work once.
template <typename Library>
struct Ready : Library {
  explicit Ready(const Guest& guest) {
    FINE(this->Create());
    this->Fill();
    FINE(this->SetStream(guest.second));
    FINE(this->Run());
    BOOST_TEST(this->IsRight());
    this->Clear();
  }
};

template <typename Library>
void CheckItKeepsTheStack() {
  const Guest guest;
  const Entries stack = {guest.other.get(), guest.context.get()};
  SetStack(stack);
  const bool was_active = IsActive(0);
  Library library;
  FINE(library.Create());
  library.Fill();
  for (const CUstream stream : {guest.stream, CUstream{nullptr}, CU_STREAM_PER_THREAD}) {
    FINE(library.SetStream(stream));
    FINE(library.Run());
    BOOST_TEST(library.IsRight());
    library.Clear();
  }
  BOOST_TEST((GetStack() == stack));
  OnAnotherThread([&] {
    SetStack({guest.context.get()});
    FINE(library.Run());
    FINE(library.Destroy());
    SetStack({});
  });
  BOOST_TEST((GetStack() == stack));
  BOOST_TEST(IsActive(0) == was_active);
}

// The work goes where the stream is; stream 0 is the current context's.
template <typename Library>
void CheckItRunsWhereItsStreamIs() {
  const Guest guest;
  Ready<Library> library(guest);
  SetStack({guest.other.get()});
  FINE(library.SetStream(guest.stream));
  FINE(library.Run());
  BOOST_TEST(library.IsRight());
  for (const CUstream elsewhere : {CUstream{nullptr}, guest.other_stream}) {
    FINE(library.SetStream(elsewhere));
    BOOST_CHECK_EQUAL(library.Run(), Library::kElsewhere);
    OK(RAW(cuCtxSynchronize)());
  }
  BOOST_TEST((GetStack() == Entries{guest.other.get()}));
  FINE(library.SetStream(guest.stream));
  library.Clear();
  FINE(library.Run());
  BOOST_TEST(library.IsRight());
  FINE(library.Destroy());
  BOOST_TEST((GetStack() == Entries{guest.other.get()}));
}

template <typename Library>
void CheckADeadContext() {
  PushDeadContext();
  Library library;
  BOOST_CHECK_EQUAL(library.Create(), Library::kDeadContext);
  OK(RAW(cuCtxPopCurrent)(nullptr));
}

// A stream that was set is only looked at when there is work.
template <typename Library>
void CheckADestroyedStream() {
  const Guest guest;
  Ready<Library> library(guest);
  for (const bool once_more : {true, false}) {
    CUstream stream = nullptr;
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    FINE(library.SetStream(stream));
    FINE(library.Run());
    OK(RAW(cuCtxSynchronize)());
    OK(RAW(cuStreamDestroy)(stream));
    if (!once_more) break;
    FINE(library.SetStream(guest.second));
    library.Clear();
    FINE(library.Run());
    BOOST_TEST(library.IsRight());
    library.Clear();
  }
  FINE(library.Destroy());
}

// Which captures a call ends. One is strict towards a thread that is not relaxed: kGlobal to
// every thread, kThreadLocal to its own.
enum class Ends { kNone, kStrict, kAll };

template <typename Library>
struct CaptureCall {
  using Call = int (*)(Library&, const Guest&);
  using Before = void (*)(Library&, const Guest&);

  CaptureCall(const char* of, Ends what, int where_strict, Call does, Before prepares = nullptr)
      : name(of), ends(what), refused(where_strict), call(does), before(prepares) {}

  const char* name;
  Ends ends;
  int refused;  // its status where the capture is strict
  Call call;
  Before before;
};

struct Situation {
  CUstreamCaptureMode mode;
  bool other_thread;
  bool relaxed;  // the calling thread

  bool IsStrict() const {
    return !relaxed && (mode == kGlobal || (mode == kThreadLocal && !other_thread));
  }
};

inline constexpr Situation kSituations[] = {
    {kGlobal, false, false},     {kGlobal, true, false},       {kGlobal, false, true},
    {kGlobal, true, true},       {kThreadLocal, false, false}, {kThreadLocal, true, false},
    {kThreadLocal, false, true}, {kRelaxed, false, false},     {kRelaxed, true, false}};

template <typename Library>
int CallIn(Library& library, const CaptureCall<Library>& call, const Guest& guest,
           const Situation& in) {
  int status = 0;
  const auto body = [&] {
    auto mode = in.relaxed ? kRelaxed : kGlobal;
    OK(RAW(cuThreadExchangeStreamCaptureMode)(&mode));
    status = call.call(library, guest);
    OK(RAW(cuThreadExchangeStreamCaptureMode)(&mode));
  };
  if (!in.other_thread) {
    body();
    return status;
  }
  OnAnotherThread([&] {
    SetStack({guest.context.get()});
    body();
    SetStack({});
  });
  return status;
}

// guest.stream captures; handles are on guest.second.
template <typename Library>
void CheckInCapture(Library& library, const CaptureCall<Library>& call, const Guest& guest,
                    const Situation& in) {
  BOOST_TEST_CONTEXT(call.name << ", mode " << in.mode << (in.other_thread ? ", other thread" : "")
                               << (in.relaxed ? ", relaxed" : "")) {
    if (call.before != nullptr) call.before(library, guest);
    OK(Begin(guest.stream, in.mode));
    BOOST_CHECK_EQUAL(CallIn(library, call, guest, in), in.IsStrict() ? call.refused : 0);
    const bool lost = call.ends == Ends::kAll || (call.ends == Ends::kStrict && in.IsStrict());
    BOOST_CHECK_EQUAL(StatusOf(guest.stream), lost ? kLost : kActive);
    const auto end = lost ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    BOOST_CHECK_EQUAL(End(guest.stream), end);
  }
}

template <typename Library>
void CheckInCaptures(const std::vector<CaptureCall<Library>>& calls) {
  const Guest guest;
  for (const auto& call : calls) {
    for (const Situation& in : kSituations) {
      Ready<Library> library(guest);
      CheckInCapture<Library>(library, call, guest, in);
    }
  }
}

// The first handle of the context.
template <typename Library>
void CheckCreatingInCaptures() {
  for (const Situation& in : kSituations) {
    OwnContext::DestroyIdle();  // what the first handle of a context allocates, a later one finds
    const Guest guest;
    Library library;
    CheckInCapture<Library>(library,
                            {"create", Ends::kStrict, Library::kRefused,
                             [](Library& made, const Guest&) { return made.Create(); }},
                            guest, in);
  }
}

template <typename Library>
void CheckUsingInCaptures(Ends destroying) {
  CheckInCaptures<Library>({
      {"destroy", destroying, 0, [](Library& library, const Guest&) { return library.Destroy(); }},
      {"set the capturing stream", Ends::kNone, 0,
       [](Library& library, const Guest& guest) { return library.SetStream(guest.stream); }},
      {"set another stream", Ends::kNone, 0,
       [](Library& library, const Guest&) { return library.SetStream(nullptr); },
       [](Library& library, const Guest& guest) { FINE(library.SetStream(guest.stream)); }},
  });
}

// Work on stream 0 is work on every blocking stream.
template <typename Library>
void CheckStreamZeroInCaptures() {
  for (const CUstreamCaptureMode mode : kModes) {
    const Guest guest(CU_STREAM_DEFAULT);
    Ready<Library> library(guest);
    FINE(library.SetStream(nullptr));
    OK(Begin(guest.stream, mode));
    BOOST_CHECK_EQUAL(library.Run(), Library::kImplicit);
    BOOST_CHECK_EQUAL(StatusOf(guest.stream), kLost);
    IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
    FINE(library.Destroy());
  }
}

// A graph with the library's work in it.
template <typename Library>
class Captured {
 public:
  Captured(Library& library, const Guest& guest, CUstreamCaptureMode mode = kGlobal)
      : stream_(guest.stream) {
    FINE(library.SetStream(stream_));
    OK(Begin(stream_, mode));
    FINE(library.Run());
    OK(RAW(cuStreamEndCapture)(stream_, &graph_));
    OK(RAW(cuGraphInstantiate)(&program_, graph_, 0));
  }
  ~Captured() {
    OK(RAW(cuGraphExecDestroy)(program_));
    OK(RAW(cuGraphDestroy)(graph_));
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  size_t Count(CUgraphNodeType type) const {
    size_t size = 0;
    OK(RAW(cuGraphGetNodes)(graph_, nullptr, &size));
    std::vector<CUgraphNode> nodes(size);
    OK(RAW(cuGraphGetNodes)(graph_, nodes.data(), &size));
    size_t count = 0;
    for (const CUgraphNode node : nodes) {
      CUgraphNodeType is = {};
      OK(RAW(cuGraphNodeGetType)(node, &is));
      count += is == type ? 1 : 0;
    }
    return count;
  }
  void CheckReplay(Library& library) const {
    for (int i = 0; i < 2; ++i) {
      library.Clear();
      OK(RAW(cuGraphLaunch)(program_, stream_));
      OK(RAW(cuStreamSynchronize)(stream_));
      BOOST_TEST(library.IsRight());
    }
  }

 private:
  CUstream stream_;
  CUgraph graph_ = nullptr;
  CUgraphExec program_ = nullptr;
};

// The graph is the work: what the handle does later is nothing to it.
template <typename Library>
void CheckReplays() {
  const Guest guest;
  Ready<Library> library(guest);
  for (const CUstreamCaptureMode mode : kModes) {
    library.Clear();
    const Captured<Library> captured(library, guest, mode);
    BOOST_TEST(!library.IsRight());
    BOOST_TEST(captured.Count(CU_GRAPH_NODE_TYPE_KERNEL) >= 1u);
    captured.CheckReplay(library);
    FINE(library.SetStream(guest.second));
    FINE(library.Run());
    captured.CheckReplay(library);
  }
  FINE(library.Destroy());
}

// Destroying a handle waits for every stream of its context, and for no other's; using it
// waits for nothing.
template <typename Library>
void CheckDestroyingWaits() {
  const Guest guest;
  Ready<Library> library(guest);
  Ready<Library> another(guest);
  BOOST_TEST(!WaitsFor(guest.stream, false, [&] { FINE(library.Run()); }));
  BOOST_TEST(!WaitsFor(guest.stream, false, [&] { FINE(library.SetStream(nullptr)); }));
  BOOST_TEST(!WaitsFor(guest.other_stream, false, [&] { FINE(another.Destroy()); }));
  BOOST_TEST(WaitsFor(guest.stream, true, [&] { FINE(library.Destroy()); }));
}

template <typename Library>
void CheckCreatingDoesNotWait() {
  const Guest guest;
  Ready<Library> first(guest);
  Library second;
  BOOST_TEST(!WaitsFor(guest.stream, false, [&] { FINE(second.Create()); }));
}

template <typename Library>
void CheckInAGreenContext() {
  CUdevResource whole = {};
  CUdevResource part = {};
  unsigned count = 1;
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  OK(RAW(cuDeviceGetDevResource)(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
  OK(RAW(cuDevSmResourceSplitByCount)(&part, &count, &whole, nullptr, 0, 16));
  OK(RAW(cuDevResourceGenerateDesc)(&description, &part, 1));
  OK(RAW(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  OK(RAW(cuCtxFromGreenCtx)(&context, green));
  OK(RAW(cuGreenCtxStreamCreate)(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  SetStack({context});
  {
    Library library;
    FINE(library.Create());
    library.Fill();
    for (const CUstream of : {stream, CUstream{nullptr}}) {
      library.Clear();
      FINE(library.SetStream(of));
      FINE(library.Run());
      BOOST_TEST(library.IsRight());
    }
    // Its primary context is as good.
    CUcontext primary = nullptr;
    OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
    SetStack({primary});
    library.Clear();
    FINE(library.SetStream(stream));
    FINE(library.Run());
    BOOST_TEST(library.IsRight());
    BOOST_TEST((GetStack() == Entries{primary}));
    SetStack({context});
    OK(RAW(cuDevicePrimaryCtxRelease)(0));
    FINE(library.Destroy());
  }
  BOOST_TEST((GetStack() == Entries{context}));
  OK(RAW(cuStreamDestroy)(stream));
  SetStack({});
  OK(RAW(cuGreenCtxDestroy)(green));
}

// For children. They end with 0 if all is as expected.

inline CUcontext StackOfOne() {
  CUcontext top = nullptr;
  CHECK(RAW(cuCtxGetCurrent)(&top) == CUDA_SUCCESS);
  if (top == nullptr) return nullptr;
  CUcontext below = nullptr;
  CHECK(RAW(cuCtxPopCurrent)(nullptr) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxGetCurrent)(&below) == CUDA_SUCCESS);
  CHECK(below == nullptr);
  CHECK(RAW(cuCtxPushCurrent)(top) == CUDA_SUCCESS);
  return top;
}

inline bool PrimaryIsActive() {
  unsigned flags = 0;
  int active = 0;
  CHECK(RAW(cuDevicePrimaryCtxGetState)(0, &flags, &active) == CUDA_SUCCESS);
  return active != 0;
}

// The primary context is there, and alone on the stack if `bound`, which is empty otherwise.
inline void CheckPrimary(bool bound) {
  CHECK(PrimaryIsActive());
  CUcontext primary = nullptr;
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  CHECK(RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
  CHECK(StackOfOne() == (bound ? primary : nullptr));
}

inline CUcontext MakeCurrent() {
  CUcontext context = nullptr;
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxCreate)(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  return context;
}

// The library keeps a reference to the primary context that it made, for ever.
template <typename Library>
int ChildCreatesWithoutContext() {
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  Library library;
  CHECK(library.Create() == 0);
  CheckPrimary(Library::kCreateBinds);
  CHECK(library.Destroy() == 0);
  CHECK(PrimaryIsActive());
  return 0;
}

template <typename Library>
int ChildRunsWithoutContext() {
  MakeCurrent();
  CUstream stream = nullptr;
  CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  Library library;
  CHECK(library.Create() == 0);
  library.Fill();
  CHECK(RAW(cuCtxPopCurrent)(nullptr) == CUDA_SUCCESS);
  CHECK(library.SetStream(stream) == 0);
  CHECK(StackOfOne() == nullptr);
  CHECK(!PrimaryIsActive());
  CHECK(library.Run() == 0);
  CHECK(PrimaryIsActive() == Library::kRunBinds);
  if (Library::kRunBinds) CheckPrimary(true);
  CHECK(library.IsRight());
  return 0;
}

template <typename Library>
int ChildDestroysWithoutContext() {
  MakeCurrent();
  Library library;
  CHECK(library.Create() == 0);
  CHECK(RAW(cuCtxPopCurrent)(nullptr) == CUDA_SUCCESS);
  CHECK(library.Destroy() == 0);
  CHECK(PrimaryIsActive() == Library::kDestroyBinds);
  if (Library::kDestroyBinds) CheckPrimary(true);
  return 0;
}

template <typename Library>
int CallsInFork(Library& library) {
  if (library.Run() != Library::kForkedRun) return 1;
  if (library.SetStream(nullptr) != 0) return 2;
  if (library.Destroy() != 0) return 3;
  return library.Create() == Library::kForkedCreate ? 0 : 4;
}

// Nothing works in a forked child, and the parent does not notice.
template <typename Library>
int ChildForks() {
  MakeCurrent();
  CUstream stream = nullptr;
  CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  Library library;
  CHECK(library.Create() == 0);
  CHECK(library.SetStream(stream) == 0);
  library.Fill();
  CHECK(library.Run() == 0);
  CHECK(library.IsRight());
  library.Clear();
  const pid_t forked = fork();
  if (forked == 0) _exit(CallsInFork(library));
  int status = 0;
  CHECK(waitpid(forked, &status, 0) == forked);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(library.Run() == 0);
  CHECK(library.IsRight());
  CHECK(library.Destroy() == 0);
  return 0;
}

// Neither a handle that is left behind at the end of the process, nor the end of its context
// before, is an error.
template <typename Library>
int ChildLeavesHandles() {
  const CUcontext first = MakeCurrent();
  static auto* const of_dead = new Library;
  CHECK(of_dead->Create() == 0);
  CHECK(RAW(cuCtxDestroy)(first) == CUDA_SUCCESS);
  MakeCurrent();
  static auto* const left = new Library;
  CHECK(left->Create() == 0);
  return 0;
}

}  // namespace cudasim_facts

// The cases that all four have, of `Library`.
#define CUDASIM_MATH_FACTS(Library)                                                              \
  CHILD(creates_without_context) { return ChildCreatesWithoutContext<Library>(); }               \
  CHILD(runs_without_context) { return ChildRunsWithoutContext<Library>(); }                     \
  CHILD(destroys_without_context) { return ChildDestroysWithoutContext<Library>(); }             \
  CHILD(forks) { return ChildForks<Library>(); }                                                 \
  CHILD(leaves_handles) { return ChildLeavesHandles<Library>(); }                                \
  BOOST_AUTO_TEST_CASE(without_a_context_it_makes_the_primary_and_may_leave_it_behind) {         \
    REQUIRE_CHILD_PASSES("creates_without_context");                                             \
    REQUIRE_CHILD_PASSES("runs_without_context");                                                \
    REQUIRE_CHILD_PASSES("destroys_without_context");                                            \
  }                                                                                              \
  BOOST_AUTO_TEST_CASE(in_a_forked_child_it_fails) { REQUIRE_CHILD_PASSES("forks"); }            \
  BOOST_AUTO_TEST_CASE(a_handle_may_be_left_behind) { REQUIRE_CHILD_PASSES("leaves_handles"); }  \
  BOOST_AUTO_TEST_CASE(with_its_context_current_it_keeps_the_stack) {                            \
    CheckItKeepsTheStack<Library>();                                                             \
  }                                                                                              \
  BOOST_AUTO_TEST_CASE(it_runs_where_its_stream_is) { CheckItRunsWhereItsStreamIs<Library>(); }  \
  BOOST_AUTO_TEST_CASE(a_dead_context_is_refused) { CheckADeadContext<Library>(); }              \
  BOOST_AUTO_TEST_CASE(a_destroyed_stream_can_be_replaced) { CheckADestroyedStream<Library>(); } \
  BOOST_AUTO_TEST_CASE(stream_zero_ends_the_captures_of_blocking_streams) {                      \
    CheckStreamZeroInCaptures<Library>();                                                        \
  }                                                                                              \
  BOOST_AUTO_TEST_CASE(a_graph_repeats_it) { CheckReplays<Library>(); }                          \
  BOOST_AUTO_TEST_CASE(it_works_in_a_green_context) { CheckInAGreenContext<Library>(); }

#endif  // CUDASIM_TEST_MATH_LIBRARY_H_
