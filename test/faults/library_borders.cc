// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The border values of pools and scopes of the handles of toolkit libraries. They work in
// Things::other, since a stream of Things::home captures, which destroying a handle there would
// end.

#include <climits>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuguest/libraries/cublas.h"
#include "cuguest/libraries/cufft.h"
#include "cuguest/libraries/cusolver.h"
#include "cuguest/libraries/cusparse.h"
#include "cuguest/libraries/library.h"
#include "cuguest/objects/device_view.h"
#include "test/faults/cc_parameters.h"

namespace cuguest_faults {
namespace {

namespace runtime = cuguest::runtime;
using cuguest::DeviceView;
using runtime::CublasHandles;
using runtime::CublasScope;
using Layout = runtime::CufftPlans::Layout;
using runtime::CufftPlans;
using runtime::CufftScope;
using Bytes = DeviceView<std::byte>;

constexpr long long kSamples = 16;

// Of each library: the types under test, and how a scope is made.
template <typename HandlesOf, typename ScopeOf, typename LibraryOf>
struct Kit {
  using Handles = HandlesOf;
  using Scope = ScopeOf;
  using Library = LibraryOf;
  static std::unique_ptr<Scope> Borrow(Handles* handles, const StreamRef& stream) {
    return std::make_unique<Scope>(*handles, stream);
  }
};
struct Cublas : Kit<CublasHandles, CublasScope, runtime::CublasLibrary> {
  static constexpr char kName[] = "cuBLAS";
};
struct CusolverDn
    : Kit<runtime::CusolverDnHandles, runtime::CusolverDnScope, runtime::CusolverLibrary> {
  static constexpr char kName[] = "cuSOLVER";
};
struct Cusparse : Kit<runtime::CusparseHandles, runtime::CusparseScope, runtime::CusparseLibrary> {
  static constexpr char kName[] = "cuSPARSE";
};
struct Cufft : Kit<CufftPlans, CufftScope, runtime::CufftLibrary> {
  static constexpr char kName[] = "cuFFT";
  static std::unique_ptr<CufftScope> Borrow(CufftPlans* plans, const StreamRef& stream) {
    return std::make_unique<CufftScope>(*plans, Layout::Line(kSamples), stream);
  }
};

StreamRef OthersStream(const Things& things, CUstream stream) {
  return StreamRef::Borrow(stream, things.other.ref());
}
StreamRef OthersStream(const Things& things) { return OthersStream(things, things.other.stream()); }
Parameter<StreamRef> InOther() {
  const auto special = [](CUstream stream) {
    return [stream](Given& given) { return OthersStream(given.things, stream); };
  };
  return {[](Given& given) { return OthersStream(given.things); },
          {Is("is empty", StreamRef(), {kInvalid}),
           Is("has no context", StreamRef::Borrow(nullptr, ContextRef()), {kInvalid}),
           {"is the legacy one", special(CU_STREAM_LEGACY), {0}},
           {"is the thread's own", special(CU_STREAM_PER_THREAD), {0}},
           {"is of a context that was reset",
            [](Given& given) { return StreamRef::Borrow(CU_STREAM_LEGACY, given.things.ended); },
            Expected{kPrecondition}.ByDriver()}}};
}
Parameter<ContextRef> Other(int empty, int over) {
  Parameter<ContextRef> ref = Ref(empty, over);
  ref.valid = [](Given& given) { return given.things.other.ref(); };
  return ref;
}

// A pool that forgets its handles before it goes, as contexts that live want it.
template <typename Handles>
struct Forgetting {
  Forgetting() = default;
  Forgetting(const Forgetting&) = delete;
  Forgetting& operator=(const Forgetting&) = delete;
  ~Forgetting() { handles.ForgetAll(); }
  Handles handles;
};
template <typename Handles>
Handles* KeepPool(Given& given) {
  return &given.Keep(std::make_unique<Forgetting<Handles>>())->get()->handles;
}
template <typename Handles>
Parameter<Handles*> Pool() {
  return {[](Given& given) { return KeepPool<Handles>(given); }, {}};
}
template <typename K>
Parameter<typename K::Scope*> Open() {
  return {[](Given& given) {
            auto* const pool = KeepPool<typename K::Handles>(given);
            return given.Keep(K::Borrow(pool, OthersStream(given.things)))->get();
          },
          {}};
}

// A library keeps memory in each context that it was used in.
template <typename K>
std::vector<Row> WarmedUp(std::vector<Row> rows) {
  for (Row& row : rows) {
    row.warm_up = [](const Things& things) {
      Forgetting<typename K::Handles> pool;
      BOOST_TEST(K::Borrow(&pool.handles, OthersStream(things))->ok());
    };
  }
  return rows;
}

// A scope ends where it cannot be entered again.
Everywhere EntersAgain() {
  Everywhere everywhere = UsesScope();
  everywhere.host_function = everywhere.elsewhere = Expected{kPrecondition}.Reported();
  return everywhere;
}

// Where the driver may not be called the handle is given up.
Everywhere PutsBack() {
  return {{0},
          {kPrecondition},
          Expected{kNoPermission}.Reported(),
          Expected{kUnavailable}.Reported(),
          {kCancelled}};
}

template <typename Scope>
absl::Status Leave(Scope* scope) {
  return scope->ok() ? scope->Leave() : scope->status();
}

template <typename K>
std::vector<Row> OfEach() {
  using Handles = typename K::Handles;
  using Library = typename K::Library;
  using Scope = typename K::Scope;
  const std::string of = K::kName;
  return {
      MakeRow("CublasHandles CusolverDnHandles CusparseHandles CufftPlans LibraryHandles: " + of,
              std::function([] { return Handles().library().Create != nullptr ? 0 : kRefuses; }),
              AsksNobody()),
      MakeRow("CublasLibrary CusolverLibrary CusparseLibrary CufftLibrary "
              "ToolkitFunctions ToolkitFunctions::Linked: " +
                  of,
              std::function([] { return Library::Linked().Destroy != nullptr ? 0 : kRefuses; }),
              AsksNobody()),
      MakeRow("ToolkitFunctions::Open: " + of,
              std::function([](const char* name) { return Library::Open(name).status(); }),
              AsksNobody(),
              Among<const char*>(
                  nullptr, {Is<const char*>("is no file", "/none/of it", {kUnavailable}),
                            Is<const char*>("is another library", "libc.so.6", {kUnimplemented})})),
      MakeRow("ToolkitFunctions::Find: " + of, std::function([](const char* symbol) {
                return Library::Linked().template Find<void (*)()>(symbol).status();
              }),
              AsksNobody(),
              Among<const char*>("malloc",
                                 {Is<const char*>("is null", nullptr, {kInvalid}),
                                  Is<const char*>("is empty", "", {kUnimplemented}),
                                  Is<const char*>("is nobody's", "nobodys", {kUnimplemented})})),
      MakeRow("CublasScope CusolverDnScope CusparseScope CufftScope LibraryScope: " + of,
              std::function([](Handles* handles, StreamRef stream) {
                return Leave(K::Borrow(handles, stream).get());
              }),
              AsksDriver(), Pool<Handles>(), InOther()),
      MakeRow("LibraryScope::CheckOperand: " + of,
              std::function([](Scope* scope, CUdeviceptr pointer, size_t bytes) {
                return scope->CheckOperand(reinterpret_cast<const void*>(pointer), bytes);
              }),
              AsksDriver(), Open<K>(),
              Address({kInvalid}, {kInvalid}).Without("is of freed memory"),
              Count(kSamples, 1, {0}, {kInvalid}, {kInvalid})),
      MakeRow("LibraryScope::Reassert: " + of,
              std::function([](Scope* scope) { return scope->Reassert(); }), EntersAgain(),
              Open<K>()),
      MakeRow("LibraryScope::Leave: " + of,
              std::function([](Scope* scope) { return scope->Leave(); }), PutsBack(), Open<K>()),
      MakeRow("LibraryHandles::Forget: " + of,
              std::function([](Handles* handles, ContextRef context) {
                static_cast<void>(handles->Forget(context));
              }),
              AsksNobody(), Pool<Handles>(), Other(0, 0)),
      MakeRow("LibraryHandles::ForgetDestroyed: " + of,
              std::function([](Handles* handles, ContextRef context) {
                static_cast<void>(handles->ForgetDestroyed(context));
              }),
              AsksNobody(), Pool<Handles>(), Other(0, 0)),
      MakeRow("LibraryHandles::ForgetAll LibraryHandles::DropDead: " + of,
              std::function([](Handles* handles) {
                static_cast<void>(handles->DropDead());
                static_cast<void>(handles->ForgetAll());
              }),
              AsksNobody(), Pool<Handles>()),
  };
}

Parameter<size_t> AFew() {
  return Among(size_t{1}, {Is("is 0", size_t{0}, {0}), Is("is 2", size_t{2}, {0})});
}

template <typename K>
Row Preparing() {
  using Handles = typename K::Handles;
  return MakeRow("LibraryHandles::Prepare: " + std::string(K::kName),
                 std::function([](Handles* handles, ContextRef context, size_t count) {
                   return handles->Prepare(context, count);
                 }),
                 AsksDriver(), Pool<Handles>(), Other(kPrecondition, kPrecondition), AFew());
}

Parameter<int> Code() {
  return Among(1, {Is("is none", 0, {0}), Is("is -1", -1, {0}), Is("is INT_MIN", INT_MIN, {0}),
                   Is("is INT_MAX", INT_MAX, {0}), Is("is unknown", 4711, {0})});
}
template <typename Type, typename CodeOf>
int ComesBack(int number, const CodeOf& code_of) {
  const auto code = static_cast<Type>(number);
  const absl::Status status = runtime::ToStatus(code, "call it");
  return status.ok() == (number == 0) && code_of(status) == code ? 0 : kRefuses;
}

std::vector<Row> CodesOfLibraries() {
  return {MakeRow("CublasCodeOf CufftCodeOf CusolverCodeOf CusparseCodeOf",
                  std::function([](int number) {
                    return ComesBack<cublasStatus_t>(number, &runtime::CublasCodeOf) +
                           ComesBack<cufftResult>(number, &runtime::CufftCodeOf) +
                           ComesBack<cusolverStatus_t>(number, &runtime::CusolverCodeOf) +
                           ComesBack<cusparseStatus_t>(number, &runtime::CusparseCodeOf);
                  }),
                  AsksNobody(), Code())};
}

Bytes OfDestroyedContext() {
  cuguest_test::OwnContext context;
  Bytes bytes;
  {
    const cuguest::ContextGuard guard(context.get());
    CUdeviceptr memory = 0;
    OK(RAW(cuMemAlloc)(&memory, kSamples));
    bytes = ValueOf(Bytes::Borrow(memory, kSamples));
  }
  OK(RAW(cuCtxDestroy)(context.release()));
  return bytes;
}

Parameter<Bytes> WorkArea() {
  const auto part = [](size_t offset, size_t bytes) {
    return [offset, bytes](Given& given) {
      return ValueOf(Bytes::Borrow(given.things.memories.device + offset, bytes));
    };
  };
  return {part(0, 64),
          {Is("is empty", Bytes(), {0}),
           {"is not aligned", part(1, 16), {kInvalid}},
           {"is of a destroyed context", [](Given&) { return OfDestroyedContext(); },
            Expected{kPrecondition}.ByDriver()}}};
}

// Numbers of elements: at least one.
Parameter<long long> Size(Expected most) {
  return Among(kSamples, {Is("is 0", 0LL, {kInvalid}), Is("is -1", -1LL, {kInvalid}),
                          Is("is the smallest", LLONG_MIN, {kInvalid}), Is("is 1", 1LL, {0}),
                          Is("is the largest", LLONG_MAX, std::move(most))});
}
Parameter<int> Type() {
  return Among<int>(CUFFT_C2C, {Is("is none", 0, {kInvalid}), Is("is -1", -1, {kInvalid}),
                                Is("is INT_MAX", INT_MAX, {kInvalid})});
}
absl::Status Described(const Layout& layout) {
  const absl::Status checked = layout.Check();
  const bool is_same = layout.InputBytes().ok() == checked.ok() &&
                       layout.OutputBytes().ok() == checked.ok() && !layout.ToString().empty();
  return is_same ? checked : absl::InternalError("they say different things of a layout");
}

std::vector<Row> Layouts() {
  return {
      MakeRow("Layout::Line Layout::Check Layout::InputBytes Layout::OutputBytes",
              std::function([](long long n, int type, long long batch) {
                return Described(Layout::Line(n, static_cast<cufftType>(type), batch));
              }),
              AsksNobody(), Size({kInvalid}), Type(), Size({kInvalid})),
      MakeRow("Layout::Plane", std::function([](long long rows, long long columns) {
                return Described(Layout::Plane(rows, columns));
              }),
              AsksNobody(), Size({kInvalid}), Size({kInvalid})),
      MakeRow("Layout::Volume",
              std::function([](long long planes, long long rows, long long columns) {
                return Described(Layout::Volume(planes, rows, columns));
              }),
              AsksNobody(), Size({kInvalid}), Size({kInvalid}), Size({kInvalid})),
      MakeRow("Layout::Many", std::function([](long long stride, long long distance) {
                const Layout::Side side = {{kSamples, 0, 0}, stride, distance};
                return Described(Layout::Many(Layout::Line(kSamples), side, side));
              }),
              AsksNobody(),
              Among(1LL, {Is("is none", 0LL, {0}), Is("is -1", -1LL, {kInvalid}),
                          Is("is the largest", LLONG_MAX, {kInvalid})}),
              Among(kSamples, {Is("is -1", -1LL, {kInvalid}), Is("is 0", 0LL, {0}),
                               Is("is the largest", LLONG_MAX, {0})})),
  };
}

Parameter<Layout> ALayout() {
  Layout no_rank = Layout::Line(kSamples);
  no_rank.rank = 0;
  Layout many_ranks = no_rank;
  many_ranks.rank = Layout::kMaxRank + 1;
  return Among(Layout::Line(kSamples),
               {Is("says nothing", Layout(), {kInvalid}), Is("has no rank", no_rank, {kInvalid}),
                Is("has a rank too many", many_ranks, {kInvalid}),
                Is("has no samples", Layout::Line(0), {kInvalid})});
}

Row CublasWithWorkspace() {
  return MakeRow("CublasScope: with a workspace",
                 std::function([](CublasHandles* handles, Bytes workspace, const Things* things) {
                   CublasScope scope(*handles, OthersStream(*things), workspace);
                   return Leave(&scope);
                 }),
                 AsksDriver(), Pool<CublasHandles>(), WorkArea(), TheThings());
}

std::vector<Row> Plans() {
  return {
      MakeRow("CufftPlans::Prepare",
              std::function([](CufftPlans* plans, ContextRef context, Layout layout, size_t count) {
                return plans->Prepare(context, layout, count);
              }),
              AsksDriver(), Pool<CufftPlans>(), Other(kPrecondition, kPrecondition), ALayout(),
              AFew()),
      MakeRow("CufftPlans::WorkBytes",
              std::function([](CufftPlans* plans, ContextRef context, Layout layout) {
                return plans->WorkBytes(context, layout).status();
              }),
              AsksDriver(), Pool<CufftPlans>(), Other(kPrecondition, kPrecondition), ALayout()),
      MakeRow("CufftScope: with a work area",
              std::function([](CufftPlans* plans, Layout layout, Bytes area, const Things* things) {
                CufftScope scope(*plans, layout, OthersStream(*things), area);
                return Leave(&scope);
              }),
              AsksDriver(), Pool<CufftPlans>(), ALayout(), WorkArea(), TheThings()),
  };
}

}  // namespace

std::vector<Row> BordersOfLibraries() {
  return Joined({WarmedUp<Cublas>(OfEach<Cublas>()), WarmedUp<CusolverDn>(OfEach<CusolverDn>()),
                 WarmedUp<Cusparse>(OfEach<Cusparse>()), WarmedUp<Cufft>(OfEach<Cufft>()),
                 WarmedUp<Cublas>({Preparing<Cublas>(), CublasWithWorkspace()}),
                 WarmedUp<CusolverDn>({Preparing<CusolverDn>()}),
                 WarmedUp<Cusparse>({Preparing<Cusparse>()}), WarmedUp<Cufft>(Plans()),
                 CodesOfLibraries(), Layouts()});
}

}  // namespace cuguest_faults
