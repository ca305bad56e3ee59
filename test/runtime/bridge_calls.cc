// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls of peer_access.h and of the bridge: handles, questions to the runtime, scopes.

#include <string>

#include "cuguest/objects/peer_access.h"
#include "cuguest/runtime/array.h"
#include "cuguest/runtime/callee_scope.h"
#include "cuguest/runtime/context.h"
#include "cuguest/runtime/device.h"
#include "cuguest/runtime/device_buffer.h"
#include "cuguest/runtime/device_guard.h"
#include "cuguest/runtime/error.h"
#include "cuguest/runtime/function.h"
#include "cuguest/runtime/handle.h"
#include "cuguest/runtime/last_error_scope.h"
#include "cuguest/runtime/pointer.h"
#include "cuguest/runtime/texture.h"
#include "cuguest/runtime/version.h"
#include "test/runtime/calls.h"
#include "test/runtime/execution_context.h"
#include "test/runtime/kernels.h"

namespace cuguest_runtime_test {
namespace {

namespace runtime = cuguest::runtime;
using absl::StatusCode;
using cuguest::PeerAccess;
using runtime::ToDriver;
using runtime::ToRuntime;

// A program compiled for another major version of the runtime is told that it cannot work.
bool IsOfItsHeaders() { return runtime::QueryVersions().runtime / 1000 == CUDART_VERSION / 1000; }

template <typename Handle>
Handle Any() {
  static int somewhere = 0;
  return reinterpret_cast<Handle>(&somewhere);
}

// There and back again.
template <typename Handle>
bool Returns() {
  return ToDriver(ToRuntime(Any<Handle>())) == Any<Handle>();
}

std::vector<Call> Conversions() {
  return {
      {"ToDriver ToRuntime: handles", kOk,
       [](const Things&) {
         return Holds(Returns<CUstream>() && Returns<CUevent>() && Returns<CUgraph>() &&
                      Returns<CUgraphNode>() && Returns<CUgraphExec>() && Returns<CUuserObject>() &&
                      Returns<CUmemoryPool>() && Returns<CUarray>() &&
                      Returns<CUmipmappedArray>() && Returns<CUfunction>() && Returns<CUkernel>());
       }},
      {"ToDriver ToRuntime: null and stream 0", kOk,
       [](const Things&) {
         return Holds(ToDriver(cudaEvent_t{}) == nullptr && ToDriver(cudaStream_t{}) != nullptr &&
                      ToDriver(static_cast<const void*>(nullptr)) == 0 &&
                      ToRuntime(CUdeviceptr{0}) == nullptr);
       }},
      {"ToDriver ToRuntime: pointers", kOk,
       [](const Things& t) {
         return Holds(ToDriver(ToRuntime(t.memories.device)) == t.memories.device);
       }},
      {"TextureToDriver TextureToRuntime SurfaceToDriver SurfaceToRuntime", kOk,
       [](const Things&) {
         return Holds(runtime::TextureToDriver(runtime::TextureToRuntime(7)) == 7 &&
                      runtime::SurfaceToDriver(runtime::SurfaceToRuntime(7)) == 7);
       }},
      {"ToDriver: a channel descriptor", kOk,
       [](const Things&) {
         return ToDriver(cudaChannelFormatDesc{32, 0, 0, 0, cudaChannelFormatKindFloat});
       }},
      {"ToDriver: an impossible channel descriptor", kRefused,
       [](const Things&) {
         return ToDriver(cudaChannelFormatDesc{3, 0, 0, 0, cudaChannelFormatKindFloat});
       }},
      {"ToRuntime: a descriptor", kOk,
       [](const Things&) {
         return ToRuntime(CUDA_ARRAY_DESCRIPTOR{0, 0, CU_AD_FORMAT_FLOAT, 1});
       }},
      {"ToRuntime: an impossible descriptor", kRefused,
       [](const Things&) {
         return ToRuntime(CUDA_ARRAY_DESCRIPTOR{0, 0, CU_AD_FORMAT_FLOAT, 3});
       }},
      {"ToSymbol", kOk,
       [](const Things& t) { return Holds(runtime::ToSymbol(t.kernel) != nullptr); }},
      {"ToRuntime FromRuntime: a device", kOk,
       [](const Things&) { return runtime::FromRuntime(ToRuntime(First())); }},
      {"FromRuntime: no device", StatusCode::kNotFound,
       [](const Things&) { return runtime::FromRuntime(4711); }},
      {"ToDriver ToRuntime ErrorName ErrorText IsSticky: errors", kOk,
       [](const Things&) {
         const cudaError_t error = ToRuntime(ToDriver(cudaErrorMemoryAllocation));
         return Holds(error == cudaErrorMemoryAllocation && !runtime::IsSticky(error) &&
                      runtime::ErrorName(error) != nullptr && runtime::ErrorText(error) != nullptr);
       }},
      {"ToStatus RuntimeCodeOf", kOk,
       [](const Things&) {
         const absl::Status status = runtime::ToStatus(cudaErrorMemoryAllocation, "allocate");
         return Holds(runtime::RuntimeCodeOf(status) == cudaErrorMemoryAllocation);
       }},
  };
}

std::vector<Call> Questions() {
  const bool can_work = IsOfItsHeaders();
  return {
      {"QueryVersions", kOk,
       [](const Things&) {
         const cuguest::Versions versions = runtime::QueryVersions();
         return versions.problem.ok() ? Holds(versions.runtime >= 12000) : versions.problem;
       }},
      {"CanWork", can_work ? kOk : kOver, [](const Things&) { return runtime::CanWork(); }},
      {"Explain", can_work ? kOk : kOver,
       [](const Things&) {
         const std::string sentence = runtime::Explain();
         return sentence.find("CUDA can work here") == 0 ? absl::OkStatus()
                                                         : absl::FailedPreconditionError(sentence);
       }},
      {"RuntimeContext::Query RuntimeContext::is_primary RuntimeContext::ToString", kOk,
       [](const Things&) {
         const auto context = runtime::RuntimeContext::Query();
         if (!context.ok()) return context.status();
         return Holds(!context->ToString().empty() &&
                      (!context->is_primary() || context->device == First()));
       }},
      {"KernelOf: null", kRefused, [](const Things&) { return runtime::KernelOf(nullptr); }},
      {"KernelOf", kOk, [](const Things&) { return runtime::KernelOf(ScaleSymbol()); }},
      {"FunctionOf: a symbol", kOk,
       [](const Things& t) { return runtime::FunctionOf(ScaleSymbol(), t.home.ref()); }},
      {"FunctionOf: null", kRefused,
       [](const Things& t) {
         return runtime::FunctionOf(static_cast<const void*>(nullptr), t.home.ref());
       }},
      {"FunctionOf: a symbol in a destroyed context", kOver,
       [](const Things& t) { return runtime::FunctionOf(ScaleSymbol(), t.ended); }},
      {"FunctionOf: a kernel", kOk,
       [](const Things& t) { return runtime::FunctionOf(t.kernel, t.home.ref()); }},
      {"FunctionOf: a kernel in a destroyed context", kOver,
       [](const Things& t) { return runtime::FunctionOf(t.kernel, t.ended); }},
      {"FunctionOf: a null kernel", kRefused,
       [](const Things& t) { return runtime::FunctionOf(CUkernel{}, t.home.ref()); }},
      {"LibraryOf", Since(12050, kOk),
       [](const Things& t) { return runtime::LibraryOf(t.kernel); }},
      {"LibraryOf: null", kRefused, [](const Things&) { return runtime::LibraryOf(nullptr); }},
      {"ModuleOf", kOk, [](const Things& t) { return runtime::ModuleOf(t.function); }},
      {"ModuleOf: null", kRefused, [](const Things&) { return runtime::ModuleOf(nullptr); }},
      {"PeerAccess::Query", kOk, [](const Things&) { return PeerAccess::Query(First(), First()); }},
      {"PeerAccess::Query: no device", StatusCode::kNotFound,
       [](const Things&) { return PeerAccess::Query(First(), Device::Borrow(4711)); }},
      {"PeerAccess::Check: of itself", StatusCode::kUnimplemented,
       [](const Things&) { return PeerAccess::Check(First(), First()); }},
      {"PeerAccess::Enable: on one device", StatusCode::kUnimplemented,
       [](const Things& t) { return PeerAccess::Enable(t.home.ref(), t.other.ref()); }},
      {"PeerAccess::Enable: a destroyed context", kOver,
       [](const Things& t) { return PeerAccess::Enable(t.home.ref(), t.ended); }},
      {"PeerAccess PeerAccess::context PeerAccess::peer PeerAccess::was_enabled "
       "PeerAccess::Release PeerAccess::Leak: of nobody",
       kOk,
       [](const Things&) {
         PeerAccess access;
         const bool empty = access.context() == ContextRef() && access.peer() == ContextRef() &&
                            !access.was_enabled();
         absl::Status status = access.Release();
         access.Leak();
         return status.ok() ? Holds(empty) : status;
       }},
  };
}

// While the program loads: what the calls are given uses the runtime.
const bool asked = cudasim_test::AskForExecutionContexts();

// Of the runtime of CUDA 13.1 or newer. What succeeds has the runtime take a reference to the
// primary context, and make driver calls whose faults are the runtime's: execution_context_test.cc
// has it.
std::vector<Call> ExecutionContexts() {
  if (!cudasim_test::HasExecutionContexts()) return {};
  return {
      {"ExecutionContextOf: a user's context", kRefused,
       [](const Things& t) { return runtime::ExecutionContextOf(t.home.ref()).status(); }},
      {"ExecutionContextOf: a destroyed context", kOver,
       [](const Things& t) { return runtime::ExecutionContextOf(t.ended).status(); }},
      {"ExecutionContextOf: no device", StatusCode::kNotFound,
       [](const Things&) { return runtime::ExecutionContextOf(Device::Borrow(4711)).status(); }},
      {"ContextOf: null", kRefused,
       [](const Things&) { return runtime::ContextOf(nullptr).status(); }},
  };
}

std::vector<Call> Scopes() {
  using runtime::CalleeScope;
  using runtime::DeviceGuard;
  using runtime::LastErrorScope;
  return {
      {"CalleeScope CalleeScope::ok CalleeScope::result CalleeScope::doing CalleeScope::advice "
       "CalleeScope::Reassert CalleeScope::Leave",
       kOk,
       [](const Things& t) {
         CalleeScope scope(t.home.ref());
         return EnterAndLeave(scope);
       }},
      {"CalleeScope: by handle", kOk,
       [](const Things& t) {
         CalleeScope scope(t.home.get());
         return EnterAndLeave(scope);
       }},
      {"CalleeScope: a destroyed context", kOver,
       [](const Things& t) {
         CalleeScope scope(t.ended);
         return EnterAndLeave(scope);
       }},
      {"CalleeScope: null", kOver,
       [](const Things&) {
         CalleeScope scope(CUcontext{});
         return EnterAndLeave(scope);
       }},
      {"CalleeScope::Note", kOk,
       [](const Things& t) {
         CalleeScope scope(t.home.ref());
         if (!scope.ok()) return cuguest::ToStatus(scope);
         return runtime::ToStatus(scope.Note(cudaSuccess, "nothing"), "note a call");
       }},
      {"DeviceGuard DeviceGuard::ok DeviceGuard::error DeviceGuard::context "
       "DeviceGuard::Reassert",
       kOk,
       [](const Things&) {
         DeviceGuard guard(First(), cuguest::IfInactive::kCreate);
         if (!guard.ok()) return cuguest::ToStatus(guard);
         const CUresult code = guard.Reassert();
         return code == CUDA_SUCCESS ? Holds(guard.context().ok())
                                     : cuguest::ToStatus(code, "reassert a scope");
       }},
      {"DeviceGuard: that creates nothing", kDepends,
       [](const Things&) { return cuguest::ToStatus(DeviceGuard(First()).error()); }},
      {"DeviceGuard: no device", StatusCode::kNotFound,
       [](const Things&) { return cuguest::ToStatus(DeviceGuard(Device::Borrow(4711)).error()); }},
      {"LastErrorScope LastErrorScope::before LastErrorScope::Note LastErrorScope::Check "
       "LastErrorScope::Leave",
       kOk,
       [](const Things&) {
         LastErrorScope scope;
         scope.Note(cudaSuccess, "nothing");
         const absl::Status status = scope.Check();
         return scope.Leave() && scope.before() == cudaPeekAtLastError()
                    ? status
                    : absl::InternalError("changed");
       }},
  };
}

}  // namespace

std::vector<Call> BridgeCalls() {
  return Joined({Conversions(), Questions(), ExecutionContexts(), Scopes()});
}

const std::vector<Call>& CallsThatTheRuntimeRefuses() {
  static const auto& calls = *new std::vector<Call>{
      {"KernelOf: no symbol", StatusCode::kNotFound,
       [](const Things& t) { return runtime::KernelOf(&t); }},
      {"FunctionOf: no symbol", StatusCode::kNotFound,
       [](const Things& t) {
         return runtime::FunctionOf(static_cast<const void*>(&t), t.home.ref());
       }},
      {"AllocateBuffer: more than there is", StatusCode::kResourceExhausted,
       [](const Things& t) {
         return runtime::AllocateBuffer<int>(t.home.ref(), Things::kTooMany);
       }},
      {"CalleeScope: around a call that fails", StatusCode::kResourceExhausted,
       [](const Things& t) {
         runtime::CalleeScope scope(t.home.ref());
         if (!scope.ok()) return cuguest::ToStatus(scope);
         void* pointer = nullptr;
         return runtime::ToStatus(scope.Note(cudaMalloc(&pointer, Things::kTooMany), "cudaMalloc"),
                                  "allocate");
       }},
  };
  return calls;
}

}  // namespace cuguest_runtime_test
