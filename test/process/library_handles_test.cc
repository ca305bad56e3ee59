// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Library handles where CUDA cannot be called, or no longer: at the end of the process
// (exit_order_test.cc has the order), in a forked child, in a stream callback, and on a device
// that is lost. Handles are given up, and nothing crashes.

#include <cstdio>

#include "cudasim/sim.h"
#include "cudasim/sim_library.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/incident.h"
#include "cuguest/libraries/cublas.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "kernels/fault.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

namespace runtime = cuguest::runtime;
using cudasim::Sim;
using cudasim::SimLibrary;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Driver;
using cuguest::ObjectDriver;
using cuguest::StreamRef;
using cuguest_test::MakeContext;
using runtime::CublasHandles;
using runtime::CublasScope;

absl::Status Multiply(CublasScope& scope, float* matrices) {
  const float one = 1.0F;
  return runtime::ToStatus(cublasSgemm(scope.handle(), CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one,
                                       matrices, 2, matrices + 4, 2, &one, matrices + 8, 2),
                           "multiply");
}

float* Matrices(const ContextRef& context) {
  return cuguest::DeviceBuffer<float>::Allocate(context, 12).value().Leak().data();
}

// Never destroyed; nullptr outside of the scenario.
CublasHandles* g_leaked = nullptr;
ContextRef g_context;

struct SaysWhenItEnds {
  ~SaysWhenItEnds() {
    if (g_leaked == nullptr) return;
    const CublasScope scope(*g_leaked, StreamRef::Borrow(nullptr, g_context));
    CHECK(scope.status().code() == absl::StatusCode::kCancelled);
    CHECK(g_leaked->Prepare(g_context, 2).code() == absl::StatusCode::kCancelled);
    std::printf("static objects are gone\n");
  }
};

// From before cuInit, so destroyed when the driver has ended. It reports after the handles.
SaysWhenItEnds g_last;
CublasHandles g_early;

void HandlesThroughTheEnd() {
  g_context = ContextRef::Borrow(MakeContext());
  g_leaked = new CublasHandles;
  for (CublasHandles* handles : {&g_early, g_leaked}) {
    CublasScope scope(*handles, StreamRef::Borrow(nullptr, g_context));
    CHECK(scope.ok());
    CHECK(Multiply(scope, Matrices(g_context)).ok());
  }
  std::printf("main ends\n");
}

void AForkedChild() {
  const ContextRef context = ContextRef::Borrow(MakeContext());
  const StreamRef stream = StreamRef::Borrow(nullptr, context);
  auto* handles = new CublasHandles;
  CHECK(handles->Prepare(context).ok());
  cuguest_test::Fork([&] {
    SimLibrary::ResetCalls();
    const CublasScope scope(*handles, stream);
    CHECK(cuguest::CodeOf(scope.status()) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(cuguest::CodeOf(handles->Prepare(context, 2)) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(handles->DropDead() == 0);
    delete handles;
    CHECK(SimLibrary::Calls("cublasDestroy_v2") == 0);
  });
  {
    CublasScope scope(*handles, stream);
    CHECK(Multiply(scope, Matrices(context)).ok());
  }
  delete handles;
}

struct Callback {
  CublasHandles* handles;
  CublasHandles* ending;
  ContextRef context;
  bool refused;
  bool forgot;
};

void CUDA_CB InHostFunction(void* data) {
  auto* seen = static_cast<Callback*>(data);
  const CublasScope scope(*seen->handles, StreamRef::Borrow(nullptr, seen->context));
  seen->refused = cuguest::CodeOf(scope.status()) == CUDA_ERROR_NOT_PERMITTED;
  seen->forgot = seen->handles->Forget(seen->context);
  delete seen->ending;
}

void InAStreamCallback() {
  const ContextRef context = ContextRef::Borrow(MakeContext());
  CublasHandles handles;
  Callback seen{&handles, new CublasHandles, context, false, false};
  CHECK(handles.Prepare(context).ok());
  CHECK(seen.ending->Prepare(context).ok());
  SimLibrary::ResetCalls();
  {
    const ContextGuard guard(context);
    CUstream stream = nullptr;
    CHECK((*ObjectDriver::Get())->StreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    CHECK(RAW(cuLaunchHostFunc)(stream, &InHostFunction, &seen) == CUDA_SUCCESS);
    CHECK((*ObjectDriver::Get())->StreamSynchronize(stream) == CUDA_SUCCESS);
  }
  CHECK(seen.refused);
  CHECK(seen.forgot);
  CHECK(SimLibrary::Calls("cublasDestroy_v2") == 0);
}

// After a sticky error: what the library says of it is that the device is lost.
void OnALostDevice() {
  Sim::RegisterKernel("fault",
                      [](const cudasim::SimLaunch&) { return CUDA_ERROR_ILLEGAL_ADDRESS; });
  const CUcontext callers = MakeContext();
  const ContextRef context = ContextRef::Borrow(MakeContext());
  const ObjectDriver& driver = **ObjectDriver::Get();
  CHECK(driver.CtxPushCurrent(callers) == CUDA_SUCCESS);
  const auto before = cuguest::testing::StackProbe::Take();
  CublasHandles handles;
  float* const matrices = Matrices(context);
  {
    CublasScope scope(handles, StreamRef::Borrow(nullptr, context));
    CHECK(Multiply(scope, matrices).ok());
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CHECK(driver.ModuleLoadDataEx(&module, cuguest_kernels::fault_ptx, 0, nullptr, nullptr) ==
          CUDA_SUCCESS);
    CHECK(driver.ModuleGetFunction(&function, module, "fault") == CUDA_SUCCESS);
    CHECK(driver.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
          CUDA_SUCCESS);
    CHECK(driver.StreamSynchronize(nullptr) == CUDA_ERROR_ILLEGAL_ADDRESS);
    const absl::Status status =
        runtime::ToStatus(CUBLAS_STATUS_EXECUTION_FAILED, "multiply", "a matrix");
    std::printf("%s\n", status.ToString().c_str());
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    CHECK(cuguest::CodeOf(status) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(runtime::CublasCodeOf(status) == CUBLAS_STATUS_EXECUTION_FAILED);
  }
  {
    CublasScope scope(handles, StreamRef::Borrow(nullptr, context));
    if (scope.ok()) CHECK(Multiply(scope, matrices).code() == absl::StatusCode::kDataLoss);
  }
  CHECK(handles.Forget(context));
  CHECK(before.Difference(cuguest::testing::StackProbe::Take()).empty());
  CHECK(cuguest::IncidentCount() == 0);
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(argc, argv,
                                    {
                                        {"handles_through_the_end",
                                         &HandlesThroughTheEnd,
                                         {"main ends", "static objects are gone"}},
                                        {"a_forked_child", &AForkedChild},
                                        {"in_a_stream_callback", &InAStreamCallback},
                                        {"on_a_lost_device", &OnALostDevice},
                                    });
}
