// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What command_test.py runs: each argument is one thing to do, in order. Like a program that links
// no CUDA library, it opens the driver.

#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "test/support/raw_driver.h"

namespace {

CUcontext context = nullptr;
CUdeviceptr memory = 0;

// As each process of this program that uses CUDA begins.
void Begin() {
  if (RAW(cuInit)(0) != CUDA_SUCCESS) std::exit(10);
  if (RAW(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS) std::exit(11);
  if (RAW(cuCtxPushCurrent)(context) != CUDA_SUCCESS) std::exit(12);
}

void Allocate() {
  const CUresult code = RAW(cuMemAlloc)(&memory, 64);
  std::printf("cuMemAlloc: %d\n", code);
}

void PrintDevices() {
  int count = 0;
  const CUresult code = RAW(cuInit)(0);
  if (code == CUDA_SUCCESS) RAW(cuDeviceGetCount)(&count);
  std::printf("cuInit: %d, devices: %d\n", code, count);
}

void PrintVersion() {
  int version = 0;
  RAW(cuDriverGetVersion)(&version);
  std::printf("version: %d, cuKernelGetName: %d\n", version,
              cudasim_test::FindRawSymbol("cuKernelGetName") != nullptr);
}

void AskForMissing() {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status;
  RAW(cuGetProcAddress)("cuThereIsNoSuchEntry", &function, 12040, 0, &status);
  RAW(cuGetProcAddress)("cuCtxGetId", &function, 12000, 0, &status);
}

void Fork(void (*in_child)()) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    in_child();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
}

void AskForTable() {
  CUuuid id = {};
  const void* table = nullptr;
  RAW(cuGetExportTable)(&table, &id);
  RAW(cuGetExportTable)(&table, &id);
}

// A kernel that has no host function, twice.
void LaunchUnknown() {
  static const char kPtx[] =
      ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry unknown() { ret; }\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  RAW(cuModuleLoadData)(&module, kPtx);
  RAW(cuModuleGetFunction)(&function, module, "unknown");
  for (int i = 0; i < 2; ++i) {
    const CUresult code =
        RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    std::printf("cuLaunchKernel: %d\n", code);
  }
}

void AskForWhatIsNotModelled() {
  for (int i = 0; i < 3; ++i) {
    const CUresult code = RAW(cuMulticastUnbind)(0, 0, 0, 0);
    std::printf("cuMulticastUnbind: %d\n", code);
  }
}

// A fill of pinned memory, which is looked at before and after a wait.
void FillLater() {
  void* pinned = nullptr;
  CUstream stream = nullptr;
  RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  RAW(cuMemAllocHost)(&pinned, 4);
  std::memset(pinned, 1, 4);
  RAW(cuMemsetD8Async)(reinterpret_cast<CUdeviceptr>(pinned), 2, 4, stream);
  const int before = *static_cast<unsigned char*>(pinned);
  RAW(cuStreamSynchronize)(stream);
  std::printf("before: %d, after: %d\n", before, *static_cast<unsigned char*>(pinned));
}

// A child that is left behind, until it is killed. Its report has begun when this returns.
void Leave() {
  int begun[2];
  if (pipe(begun) != 0) std::abort();
  if (fork() != 0) {
    close(begun[1]);
    char end = 0;
    static_cast<void>(!read(begun[0], &end, 1));
    return;
  }
  close(begun[1]);
  close(STDOUT_FILENO);
  close(STDERR_FILENO);
  for (;;) pause();
}

// A destroyed handle: undefined on a real driver.
void Misuse() {
  CUcontext own = nullptr;
  using CtxCreate = CUresult (*)(CUcontext*, unsigned, CUdevice);
  RAW_AS(CtxCreate, "cuCtxCreate_v2")(&own, 0, 0);
  RAW(cuCtxDestroy)(own);
  RAW(cuCtxPushCurrent)(own);
}

}  // namespace

int main(int, char** argv) {
  for (char** word = argv + 1; *word != nullptr; ++word) {
    const auto is = [&](const char* text) { return std::strcmp(*word, text) == 0; };
    if (is("begin")) Begin();
    if (is("end")) RAW(cuDevicePrimaryCtxRelease)(0);
    if (is("allocate")) Allocate();
    if (is("free")) RAW(cuMemFree)(memory);
    if (is("devices")) PrintDevices();
    if (is("version")) PrintVersion();
    if (is("missing")) AskForMissing();
    if (is("table")) AskForTable();
    if (is("launch")) LaunchUnknown();
    if (is("unmodelled")) AskForWhatIsNotModelled();
    if (is("fill")) FillLater();
    if (is("misuse")) Misuse();
    if (is("fork_and_begin")) Fork(&Begin);
    if (is("fork")) Fork([] {});
    if (is("leave")) Leave();
    if (is("clear_environment")) clearenv();
    if (is("fail")) return 7;
    if (is("kill")) std::raise(SIGTERM);
    if (is("_exit")) _exit(3);
  }
  return 0;
}
