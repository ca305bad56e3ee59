// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/libraries/library_calls.h"

#include "cuguest/libraries/cublas.h"
#include "cuguest/libraries/cufft.h"
#include "cuguest/libraries/cusolver.h"
#include "cuguest/libraries/cusparse.h"

namespace cuguest_runtime_test {
namespace {

namespace runtime = cuguest::runtime;
using absl::StatusCode;
using cuguest::DeviceView;
using cuguest::StreamRef;
using runtime::CublasHandles;
using runtime::CublasLibrary;
using runtime::CublasScope;
using Layout = runtime::CufftPlans::Layout;
using runtime::CufftLibrary;
using runtime::CufftPlans;
using runtime::CufftScope;
using runtime::CusolverDnHandles;
using runtime::CusolverDnScope;
using runtime::CusolverLibrary;
using runtime::CusparseHandles;
using runtime::CusparseLibrary;
using runtime::CusparseScope;
using Things = LibraryThings;
using Outcome = LibraryOutcome;

constexpr auto kOk = StatusCode::kOk;
constexpr auto kRefused = StatusCode::kInvalidArgument;
constexpr auto kOver = StatusCode::kFailedPrecondition;
constexpr Layout kSmall = Layout::Line(8);
constexpr Layout kLarge = Layout::Line(1 << 16);  // needs a work area

absl::Status Holds(bool claim) {
  return claim ? absl::OkStatus() : absl::InternalError("a value is not what it should be");
}

// A call on a pool of its own.
template <typename Pool>
auto With(absl::Status (*use)(Pool& pool, const Things& things)) {
  return [use](const Things& things) -> Outcome {
    auto pool = std::make_shared<Pool>();
    absl::Status status = use(*pool, things);
    return {std::move(status), pool};
  };
}

template <typename Library>
Outcome OpenAndFind(const char* symbol) {
  const absl::StatusOr<Library> library = Library::Open();
  if (!library.ok()) return library.status();
  return library->template Find<void (*)()>(symbol).status();
}

template <typename Library>
Outcome OpenNothing(const Things&) {
  return Library::Open("libno_such_library.so.13").status();
}

template <typename Scope>
absl::Status Leave(Scope& scope) {
  if (!scope.ok()) return scope.status();
  absl::Status status = scope.Reassert();
  return status.ok() ? scope.Leave() : status;
}

template <typename Scope>
absl::Status CheckOperands(Scope scope, const Things& t) {
  if (!scope.ok()) return scope.status();
  absl::Status status = scope.CheckOperand(reinterpret_cast<const void*>(t.area.get()), 256);
  return status.ok() ? scope.Leave() : status;
}

template <typename Pool>
absl::Status Forget(Pool& pool, const Things& t, absl::Status prepared) {
  if (!prepared.ok()) return prepared;
  return Holds(pool.Forget(t.home.ref()) && !pool.ForgetDestroyed(t.home.ref()) &&
               pool.DropDead() == 0 && pool.ForgetAll() == 0);
}

template <typename Pool>
absl::Status ForgetDestroyed(Pool& pool, const Things& t, absl::Status prepared) {
  return prepared.ok() ? Holds(pool.ForgetDestroyed(t.home.ref())) : prepared;
}

std::vector<LibraryCall> CublasCalls() {
  return {
      {"CublasCodeOf CublasLibrary ToolkitFunctions::Linked", kOk,
       [](const Things&) -> Outcome {
         const absl::Status status = runtime::ToStatus(CUBLAS_STATUS_INVALID_VALUE, "try");
         return Holds(runtime::CublasCodeOf(status) == CUBLAS_STATUS_INVALID_VALUE &&
                      CublasLibrary::Linked().Create != nullptr);
       }},
      {"ToolkitFunctions ToolkitFunctions::Open ToolkitFunctions::Find: cuBLAS", kOk,
       [](const Things&) { return OpenAndFind<CublasLibrary>("cublasSgemm_v2"); }},
      {"ToolkitFunctions::Open: no such cuBLAS", StatusCode::kUnavailable,
       OpenNothing<CublasLibrary>},
      {"ToolkitFunctions::Find: no such function", StatusCode::kUnimplemented,
       [](const Things&) { return OpenAndFind<CublasLibrary>("cublasNothing"); }},
      {"CublasHandles LibraryHandles::Prepare LibraryHandles LibraryHandles::library", kOk,
       With<CublasHandles>([](CublasHandles& handles, const Things& t) {
         absl::Status status = handles.Prepare(t.home.ref(), 2);
         return status.ok() ? Holds(handles.library().Create != nullptr) : status;
       })},
      {"LibraryHandles::Prepare: a destroyed context", kOver,
       With<CublasHandles>(
           [](CublasHandles& handles, const Things& t) { return handles.Prepare(t.ended); })},
      {"CublasHandles LibraryHandles::Forget LibraryHandles::DropDead "
       "LibraryHandles::ForgetAll",
       kOk, With<CublasHandles>([](CublasHandles& handles, const Things& t) {
         return Forget(handles, t, handles.Prepare(t.home.ref()));
       })},
      {"CublasHandles LibraryHandles::ForgetDestroyed", kOk,
       With<CublasHandles>([](CublasHandles& handles, const Things& t) {
         return ForgetDestroyed(handles, t, handles.Prepare(t.home.ref()));
       })},
      {"CublasScope LibraryScope LibraryScope::ok LibraryScope::status LibraryScope::handle "
       "LibraryScope::Reassert LibraryScope::Leave",
       kOk, With<CublasHandles>([](CublasHandles& handles, const Things& t) {
         CublasScope scope(handles, t.stream);
         absl::Status status = Leave(scope);
         return status.ok() ? Holds(scope.handle() == nullptr) : status;
       })},
      {"CublasScope: a workspace, and other settings", kOk,
       With<CublasHandles>([](CublasHandles& handles, const Things& t) {
         CublasScope scope(handles, t.stream, t.area.view());
         if (!scope.ok()) return scope.status();
         cublasStatus_t code = cublasSetPointerMode(scope.handle(), CUBLAS_POINTER_MODE_DEVICE);
         if (code == CUBLAS_STATUS_SUCCESS) {
           code = cublasSetMathMode(scope.handle(), CUBLAS_PEDANTIC_MATH);
         }
         return code == CUBLAS_STATUS_SUCCESS ? Leave(scope) : runtime::ToStatus(code, "set");
       })},
      {"CublasScope: no stream", kRefused,
       With<CublasHandles>([](CublasHandles& handles, const Things&) {
         return CublasScope(handles, StreamRef()).status();
       })},
      {"CublasScope: a destroyed context", kOver,
       With<CublasHandles>([](CublasHandles& handles, const Things& t) {
         return CublasScope(handles, StreamRef::Borrow(nullptr, t.ended)).status();
       })},
      {"CublasScope LibraryScope::CheckOperand", kOk,
       With<CublasHandles>([](CublasHandles& handles, const Things& t) {
         return CheckOperands(CublasScope(handles, t.stream), t);
       })},
  };
}

std::vector<LibraryCall> CufftCalls() {
  return {
      {"CufftCodeOf CufftLibrary ToolkitFunctions::Linked", kOk,
       [](const Things&) -> Outcome {
         const absl::Status status = runtime::ToStatus(CUFFT_INVALID_SIZE, "try");
         return Holds(runtime::CufftCodeOf(status) == CUFFT_INVALID_SIZE &&
                      CufftLibrary::Linked().Create != nullptr);
       }},
      {"ToolkitFunctions::Open ToolkitFunctions::Find: cuFFT", kOk,
       [](const Things&) { return OpenAndFind<CufftLibrary>("cufftExecC2C"); }},
      {"ToolkitFunctions::Open: no such cuFFT", StatusCode::kUnavailable,
       OpenNothing<CufftLibrary>},
      {"Layout::Line Layout::Plane Layout::Volume Layout::Many Layout::Check Layout::InputBytes "
       "Layout::OutputBytes Layout::ToString",
       kOk,
       [](const Things&) -> Outcome {
         const Layout::Side side = {{0, 8, 8}, 1, 512};
         const Layout cube = Layout::Volume(8, 8, 8);
         return Holds(Layout::Many(cube, side, side).Check().ok() &&
                      Layout::Plane(8, 8).InputBytes().value() == 512 &&
                      Layout::Line(8).OutputBytes().value() == 64 &&
                      cube.ToString() == "1 x 8x8x8 C2C");
       }},
      {"CufftPlans CufftPlans::Prepare CufftPlans::WorkBytes LibraryHandles::library", kOk,
       With<CufftPlans>([](CufftPlans& plans, const Things& t) {
         absl::Status status = plans.Prepare(t.home.ref(), kSmall, 2);
         if (!status.ok()) return status;
         const absl::StatusOr<size_t> bytes = plans.WorkBytes(t.home.ref(), kLarge);
         if (!bytes.ok()) return bytes.status();
         return Holds(*bytes > 0 && *bytes <= t.area.size() && plans.library().Create != nullptr);
       })},
      {"CufftPlans::Prepare: a destroyed context", kOver,
       With<CufftPlans>(
           [](CufftPlans& plans, const Things& t) { return plans.Prepare(t.ended, kSmall); })},
      {"CufftPlans::WorkBytes: no layout", kRefused,
       With<CufftPlans>([](CufftPlans& plans, const Things& t) {
         return plans.WorkBytes(t.home.ref(), Layout()).status();
       })},
      {"CufftPlans LibraryHandles::Forget LibraryHandles::DropDead "
       "LibraryHandles::ForgetAll",
       kOk, With<CufftPlans>([](CufftPlans& plans, const Things& t) {
         return Forget(plans, t, plans.Prepare(t.home.ref(), kSmall));
       })},
      {"CufftPlans LibraryHandles::ForgetDestroyed", kOk,
       With<CufftPlans>([](CufftPlans& plans, const Things& t) {
         return ForgetDestroyed(plans, t, plans.Prepare(t.home.ref(), kSmall));
       })},
      {"CufftScope LibraryScope::ok LibraryScope::status LibraryScope::handle "
       "LibraryScope::Reassert "
       "LibraryScope::Leave",
       kOk, With<CufftPlans>([](CufftPlans& plans, const Things& t) {
         CufftScope scope(plans, kSmall, t.stream);
         absl::Status status = Leave(scope);
         return status.ok() ? Holds(scope.handle() == -1) : status;
       })},
      {"CufftScope: the plan's work area, twice", kOk,
       With<CufftPlans>([](CufftPlans& plans, const Things& t) {
         CufftScope first(plans, kLarge, t.stream);
         absl::Status status = Leave(first);
         if (!status.ok()) return status;
         CufftScope second(plans, kLarge, StreamRef::Borrow(nullptr, t.home.ref()));
         return Leave(second);
       })},
      {"CufftScope: the caller's work area", kOk,
       With<CufftPlans>([](CufftPlans& plans, const Things& t) {
         CufftScope scope(plans, kLarge, t.stream, t.area.view());
         return Leave(scope);
       })},
      {"CufftScope: no stream", kRefused, With<CufftPlans>([](CufftPlans& plans, const Things&) {
         return CufftScope(plans, kSmall, StreamRef()).status();
       })},
      {"CufftScope: no layout", kRefused, With<CufftPlans>([](CufftPlans& plans, const Things& t) {
         return CufftScope(plans, Layout(), t.stream).status();
       })},
      {"CufftScope: a destroyed context", kOver,
       With<CufftPlans>([](CufftPlans& plans, const Things& t) {
         return CufftScope(plans, kSmall, StreamRef::Borrow(nullptr, t.ended)).status();
       })},
      {"CufftScope LibraryScope::CheckOperand", kOk,
       With<CufftPlans>([](CufftPlans& plans, const Things& t) {
         return CheckOperands(CufftScope(plans, kSmall, t.stream), t);
       })},
  };
}

std::vector<LibraryCall> CusolverCalls() {
  return {
      {"CusolverCodeOf CusolverLibrary ToolkitFunctions::Linked", kOk,
       [](const Things&) -> Outcome {
         const absl::Status status = runtime::ToStatus(CUSOLVER_STATUS_INVALID_VALUE, "try");
         return Holds(runtime::CusolverCodeOf(status) == CUSOLVER_STATUS_INVALID_VALUE &&
                      CusolverLibrary::Linked().Create != nullptr);
       }},
      {"ToolkitFunctions::Open ToolkitFunctions::Find: cuSOLVER", kOk,
       [](const Things&) { return OpenAndFind<CusolverLibrary>("cusolverDnSpotrf"); }},
      {"ToolkitFunctions::Open: no such cuSOLVER", StatusCode::kUnavailable,
       OpenNothing<CusolverLibrary>},
      {"CusolverDnHandles LibraryHandles::Prepare LibraryHandles::library", kOk,
       With<CusolverDnHandles>([](CusolverDnHandles& handles, const Things& t) {
         absl::Status status = handles.Prepare(t.home.ref());
         return status.ok() ? Holds(handles.library().Create != nullptr) : status;
       })},
      {"CusolverDnHandles LibraryHandles::Forget LibraryHandles::DropDead "
       "LibraryHandles::ForgetAll",
       kOk, With<CusolverDnHandles>([](CusolverDnHandles& handles, const Things& t) {
         return Forget(handles, t, handles.Prepare(t.home.ref()));
       })},
      {"CusolverDnHandles LibraryHandles::ForgetDestroyed", kOk,
       With<CusolverDnHandles>([](CusolverDnHandles& handles, const Things& t) {
         return ForgetDestroyed(handles, t, handles.Prepare(t.home.ref()));
       })},
      {"CusolverDnScope LibraryScope::ok LibraryScope::status LibraryScope::handle "
       "LibraryScope::Reassert LibraryScope::Leave",
       kOk, With<CusolverDnHandles>([](CusolverDnHandles& handles, const Things& t) {
         CusolverDnScope scope(handles, t.stream);
         absl::Status status = Leave(scope);
         return status.ok() ? Holds(scope.handle() == nullptr) : status;
       })},
      {"CusolverDnScope: a destroyed context", kOver,
       With<CusolverDnHandles>([](CusolverDnHandles& handles, const Things& t) {
         return CusolverDnScope(handles, StreamRef::Borrow(nullptr, t.ended)).status();
       })},
      {"CusolverDnScope LibraryScope::CheckOperand", kOk,
       With<CusolverDnHandles>([](CusolverDnHandles& handles, const Things& t) {
         return CheckOperands(CusolverDnScope(handles, t.stream), t);
       })},
  };
}

std::vector<LibraryCall> CusparseCalls() {
  return {
      {"CusparseCodeOf CusparseLibrary ToolkitFunctions::Linked", kOk,
       [](const Things&) -> Outcome {
         const absl::Status status = runtime::ToStatus(CUSPARSE_STATUS_INVALID_VALUE, "try");
         return Holds(runtime::CusparseCodeOf(status) == CUSPARSE_STATUS_INVALID_VALUE &&
                      CusparseLibrary::Linked().Create != nullptr);
       }},
      {"ToolkitFunctions::Open ToolkitFunctions::Find: cuSPARSE", kOk,
       [](const Things&) { return OpenAndFind<CusparseLibrary>("cusparseSpMV"); }},
      {"ToolkitFunctions::Open: no such cuSPARSE", StatusCode::kUnavailable,
       OpenNothing<CusparseLibrary>},
      {"CusparseHandles LibraryHandles::Prepare LibraryHandles::library", kOk,
       With<CusparseHandles>([](CusparseHandles& handles, const Things& t) {
         absl::Status status = handles.Prepare(t.home.ref());
         return status.ok() ? Holds(handles.library().Create != nullptr) : status;
       })},
      {"CusparseHandles LibraryHandles::Forget LibraryHandles::DropDead "
       "LibraryHandles::ForgetAll",
       kOk, With<CusparseHandles>([](CusparseHandles& handles, const Things& t) {
         return Forget(handles, t, handles.Prepare(t.home.ref()));
       })},
      {"CusparseHandles LibraryHandles::ForgetDestroyed", kOk,
       With<CusparseHandles>([](CusparseHandles& handles, const Things& t) {
         return ForgetDestroyed(handles, t, handles.Prepare(t.home.ref()));
       })},
      {"CusparseScope LibraryScope::ok LibraryScope::status LibraryScope::handle "
       "LibraryScope::Reassert LibraryScope::Leave",
       kOk, With<CusparseHandles>([](CusparseHandles& handles, const Things& t) {
         CusparseScope scope(handles, t.stream);
         absl::Status status = Leave(scope);
         return status.ok() ? Holds(scope.handle() == nullptr) : status;
       })},
      {"CusparseScope: a destroyed context", kOver,
       With<CusparseHandles>([](CusparseHandles& handles, const Things& t) {
         return CusparseScope(handles, StreamRef::Borrow(nullptr, t.ended)).status();
       })},
      {"CusparseScope LibraryScope::CheckOperand", kOk,
       With<CusparseHandles>([](CusparseHandles& handles, const Things& t) {
         return CheckOperands(CusparseScope(handles, t.stream), t);
       })},
  };
}

}  // namespace

const std::vector<LibraryCall>& LibraryCalls() {
  static const auto& calls = *new std::vector<LibraryCall>([] {
    std::vector<LibraryCall> all;
    for (const auto& table : {CublasCalls(), CufftCalls(), CusolverCalls(), CusparseCalls()}) {
      all.insert(all.end(), table.begin(), table.end());
    }
    return all;
  }());
  return calls;
}

}  // namespace cuguest_runtime_test
