// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The border values of the bridge, but for what works with handles of toolkit libraries
// (library_borders.cc).

#include <climits>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cuguest/green_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/runtime/array.h"
#include "cuguest/runtime/callee_scope.h"
#include "cuguest/runtime/context.h"
#include "cuguest/runtime/device.h"
#include "cuguest/runtime/device_buffer.h"
#include "cuguest/runtime/device_guard.h"
#include "cuguest/runtime/error.h"
#include "cuguest/runtime/function.h"
#include "cuguest/runtime/last_error_scope.h"
#include "cuguest/runtime/texture.h"
#include "cuguest/runtime/version.h"
#include "test/faults/cc_parameters.h"
#include "test/runtime/execution_context.h"
#include "test/runtime/kernels.h"

namespace cuguest_faults {
namespace {

namespace runtime = cuguest::runtime;
using cuguest::DeviceBuffer;
using cuguest::IfInactive;
using Buffer = DeviceBuffer<int>;

Parameter<int> ErrorNumber() {
  return Among<int>(cudaErrorMemoryAllocation,
                    {Is("is none", 0, {0}), Is("is -1", -1, {0}), Is("is INT_MIN", INT_MIN, {0}),
                     Is("is INT_MAX", INT_MAX, {0}), Is("is unknown", 4711, {0})});
}
int Says(bool claim) { return claim ? 0 : kRefuses; }

std::vector<Row> Conversions() {
  using Descriptor = cudaChannelFormatDesc;
  using Array = CUDA_ARRAY_DESCRIPTOR;
  constexpr auto kFloat = cudaChannelFormatKindFloat;
  return {
      MakeRow("ErrorName ErrorText IsSticky ToStatus RuntimeCodeOf", std::function([](int number) {
                const auto code = static_cast<cudaError_t>(number);
                const absl::Status status = runtime::ToStatus(code, "call it");
                return Says(runtime::ErrorName(code) != nullptr &&
                            runtime::ErrorText(code) != nullptr &&
                            status.ok() == (code == cudaSuccess) &&
                            runtime::RuntimeCodeOf(status) == code && !runtime::IsSticky(code));
              }),
              AsksNobody(), ErrorNumber()),
      MakeRow("ToDriver: a channel descriptor", std::function([](Descriptor descriptor) {
                return runtime::ToDriver(descriptor).status();
              }),
              AsksNobody(),
              Among(Descriptor{32, 0, 0, 0, kFloat},
                    {Is("has no channels", Descriptor{0, 0, 0, 0, kFloat}, {kInvalid}),
                     Is("has 3", Descriptor{32, 32, 32, 0, kFloat}, {kInvalid}),
                     Is("has -1 bits", Descriptor{-1, 0, 0, 0, kFloat}, {kInvalid}),
                     Is("has INT_MAX bits", Descriptor{INT_MAX, 0, 0, 0, kFloat}, {kInvalid}),
                     Is("has one between", Descriptor{32, 0, 32, 0, kFloat}, {kInvalid})})),
      MakeRow(
          "ToRuntime: an array's descriptor",
          std::function([](Array array) { return runtime::ToRuntime(array).status(); }),
          AsksNobody(),
          Among(Array{0, 0, CU_AD_FORMAT_FLOAT, 1},
                {Is("has no channels", Array{0, 0, CU_AD_FORMAT_FLOAT, 0}, {kInvalid}),
                 Is("has 3", Array{0, 0, CU_AD_FORMAT_FLOAT, 3}, {kInvalid}),
                 Is("has UINT_MAX", Array{0, 0, CU_AD_FORMAT_FLOAT, UINT_MAX}, {kInvalid}),
                 Is("is none", Array{0, 0, static_cast<CUarray_format>(4711), 1}, {kInvalid})})),
      MakeRow("TextureToDriver TextureToRuntime SurfaceToDriver SurfaceToRuntime",
              std::function([](unsigned long long handle) {
                return Says(runtime::TextureToDriver(runtime::TextureToRuntime(handle)) == handle &&
                            runtime::SurfaceToDriver(runtime::SurfaceToRuntime(handle)) == handle);
              }),
              AsksNobody(),
              Among(7ULL, {Is("is 0", 0ULL, {0}), Is("is the largest", ULLONG_MAX, {0})})),
      MakeRow("ToSymbol", std::function([](CUkernel kernel) {
                return Says(runtime::ToSymbol(kernel) == kernel);
              }),
              AsksNobody(),
              Parameter<CUkernel>{[](Given& given) { return given.things.kernel; },
                                  {Is<CUkernel>("is null", nullptr, {0})}}),
      MakeRow("FromRuntime", std::function([](int number) { return runtime::FromRuntime(number); }),
              AsksDriver(),
              Among(0, {Is("is -1", -1, {kNotFound}), Is("is INT_MIN", INT_MIN, {kNotFound}),
                        Is("is 1", 1, {0}), Is("is 4711", 4711, Expected{kNotFound}.ByDriver()),
                        Is("is INT_MAX", INT_MAX, Expected{kNotFound}.ByDriver())})),
  };
}

Parameter<const void*> Symbol() {
  return {[](Given&) { return ScaleSymbol(); }, {Is<const void*>("is null", nullptr, {kInvalid})}};
}
Parameter<CUkernel> AKernel() {
  return {[](Given& given) { return given.things.kernel; },
          {Is<CUkernel>("is null", nullptr, {kInvalid})}};
}

std::vector<Row> Questions() {
  return {
      MakeRow("CanWork", std::function([] { return runtime::CanWork(); }), AsksDriver()),
      MakeRow("Explain", std::function([] { return Says(!runtime::Explain().empty()); }),
              AsksNobody()),
      MakeRow("RuntimeContext::Query",
              std::function([] { return runtime::RuntimeContext::Query().status(); }),
              AsksDriver()),
      MakeRow("KernelOf",
              std::function([](const void* symbol) { return runtime::KernelOf(symbol); }),
              AsksDriver(), Symbol()),
      MakeRow("FunctionOf", std::function([](const void* symbol, ContextRef context) {
                return runtime::FunctionOf(symbol, context);
              }),
              AsksDriver(), Symbol(), Ref()),
      MakeRow("FunctionOf: of a kernel", std::function([](CUkernel kernel, ContextRef context) {
                return runtime::FunctionOf(kernel, context);
              }),
              AsksDriver(), AKernel(), Ref()),
      MakeRow("LibraryOf",
              std::function([](CUkernel kernel) { return runtime::LibraryOf(kernel); }),
              AsksDriver(), AKernel()),
      MakeRow("ModuleOf",
              std::function([](CUfunction function) { return runtime::ModuleOf(function); }),
              AsksDriver(),
              Parameter<CUfunction>{[](Given& given) { return given.things.function; },
                                    {Is<CUfunction>("is null", nullptr, {kInvalid})}}),
  };
}

// Of the runtime of CUDA 13.1 or newer.
std::vector<Row> ExecutionContexts() {
  if (!cudasim_test::HasExecutionContexts()) return {};
  const auto execution = Parameter<cudaExecutionContext_t>{
      [](Given& given) {
        const auto* green =
            given.Keep(*cuguest::GreenContext::Create(Device::Borrow(0), cuguest::SmCount{16}));
        return reinterpret_cast<cudaExecutionContext_t>(green->get());
      },
      {Is<cudaExecutionContext_t>("is null", nullptr, {kInvalid})}};
  return {
      MakeRow("ContextOf", std::function([](cudaExecutionContext_t of) {
                return runtime::ContextOf(of).status();
              }),
              AsksDriver(), execution),
      MakeRow("ExecutionContextOf", std::function([](Device device) -> absl::Status {
                // Where it is active, the runtime would take a reference to it, and keep that.
                if (cuguest::PrimaryContext::Query(device).active) return absl::OkStatus();
                const absl::Status status = runtime::ExecutionContextOf(device).status();
                const bool is_inactive = cuguest::CodeOf(status) == CUDA_ERROR_INVALID_CONTEXT;
                return is_inactive ? absl::OkStatus() : status;
              }),
              AsksDriver(), ADevice()),
  };
}

template <typename Scope>
Makes<Scope> InHome() {
  return [](const Things& things) { return std::make_unique<Scope>(things.home.ref()); };
}

std::vector<Row> Scopes() {
  using runtime::CalleeScope;
  using runtime::DeviceGuard;
  using runtime::LastErrorScope;
  const auto scope = Parameter<CalleeScope*>{Made(InHome<CalleeScope>()), {}};
  const auto errors = Parameter<LastErrorScope*>{
      Made<LastErrorScope>([](const Things&) { return std::make_unique<LastErrorScope>(); }), {}};
  return {
      MakeRow("CalleeScope", std::function([](CUcontext context) {
                CalleeScope made(context);
                return made.ok() ? cuguest::ToStatus(made.Leave(), "restore")
                                 : cuguest::ToStatus(made);
              }),
              AsksDriver(), Handle()),
      MakeRow("CalleeScope: by reference", std::function([](ContextRef context) {
                CalleeScope made(context);
                return made.ok() ? cuguest::ToStatus(made.Leave(), "restore")
                                 : cuguest::ToStatus(made);
              }),
              AsksDriver(), Ref()),
      MakeRow("CalleeScope::Note", std::function([](CalleeScope* of, int code) {
                return Says(of->Note(static_cast<cudaError_t>(code), nullptr) == code);
              }),
              AsksNobody(), scope, ErrorNumber()),
      MakeRow("CalleeScope::Reassert",
              std::function([](CalleeScope* of) { return of->Reassert(); }), UsesScope(), scope),
      MakeRow("CalleeScope::Leave", std::function([](CalleeScope* of) { return of->Leave(); }),
              EndsScope(), scope),
      MakeRow("DeviceGuard DeviceGuard::Reassert",
              std::function([](Device device, IfInactive if_inactive) {
                DeviceGuard guard(device, if_inactive);
                return guard.ok() ? cuguest::ToStatus(guard.Reassert(), "reassert")
                                  : cuguest::ToStatus(guard);
              }),
              AsksDriver(), ADevice(), Creating()),
      MakeRow("LastErrorScope LastErrorScope::Check",
              std::function([](LastErrorScope* of) { return of->Check(); }), AsksNobody(), errors),
      MakeRow("LastErrorScope::Note", std::function([](LastErrorScope* of, int code) {
                return Says(of->Note(static_cast<cudaError_t>(code), nullptr) == code);
              }),
              AsksNobody(), errors, ErrorNumber()),
      MakeRow("LastErrorScope::Leave",
              std::function([](LastErrorScope* of) { return Says(of->Leave()); }),
              {{0}, {0}, Expected{kRefuses}.Reported(), Expected{kRefuses}.Reported(), {0}},
              errors),
  };
}

std::vector<Row> Buffers() {
  const auto made = [](const Things& things) {
    return ValueOf(runtime::AllocateBuffer<int>(things.home.ref(), Things::kCount));
  };
  return {
      MakeRow("AllocateBuffer", std::function([](ContextRef context, size_t count) {
                return runtime::AllocateBuffer<int>(context, count).status();
              }),
              AsksDriver(), Ref(),
              Count(Things::kCount, sizeof(int), {0}, Expected{kExhausted}.ByDriver(), {kInvalid})),
      MakeRow("FreeBuffer",
              std::function([](Buffer* buffer) { return runtime::FreeBuffer(*buffer); }),
              GivesBack(), Owner<Buffer>(made, {0})),
  };
}

}  // namespace

std::vector<Row> BordersOfBridge() {
  return Joined({Conversions(), Questions(), ExecutionContexts(), Scopes(), Buffers()});
}

}  // namespace cuguest_faults
