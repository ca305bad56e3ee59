// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Is CUDA initialised in this process? Asking neither loads the driver nor initialises it, and the
// answer does not depend on who has done so.

#include <dlfcn.h>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/c.h"
#include "cuguest/driver.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::Driver;

bool IsInitialized() {
  const bool says = Driver::IsInitialized();
  CHECK(cuguest_is_initialized() == (says ? 1 : 0));
  return says;
}

// The host's own driver.
class Host {
 public:
  Host() : library_(dlopen("libcuda.so.1", RTLD_NOW)) { CHECK(library_ != nullptr); }
  template <typename Function>
  Function* Find(const char* name) const {
    auto* const found = reinterpret_cast<Function*>(dlsym(library_, name));
    CHECK(found != nullptr);
    return found;
  }
  void Init() const { CHECK(Find<CUresult(unsigned)>("cuInit")(0) == CUDA_SUCCESS); }

 private:
  void* library_;
};

void NothingIsLoaded() {
  CHECK(!IsInitialized());
  CHECK(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) == nullptr);
  const Host host;
  host.Init();
  CHECK(IsInitialized());
}

void AHostThatOnlyLoads() {
  const Host host;
  CHECK(!IsInitialized());
  CHECK(!IsInitialized());
  int count = 0;
  const auto get_count = host.Find<CUresult(int*)>("cuDeviceGetCount");
  CHECK(get_count(&count) == CUDA_ERROR_NOT_INITIALIZED);
  host.Init();
  CHECK(IsInitialized());
  CHECK(get_count(&count) == CUDA_SUCCESS);
}

void OurOwnFirstUse() {
  CHECK(Driver::Get().ok());
  CHECK(!IsInitialized());
  CHECK(Driver::GetInitialized().ok());
  const std::uint64_t calls = Sim::TotalCalls();
  CHECK(IsInitialized());
  CHECK(Sim::TotalCalls() == calls);
}

// What is asked before cuInit is asked again after it.
void AnAcquireInitialises() {
  CHECK(Driver::Get().ok());
  const cuguest::Acquired acquired =
      AcquireOn(cuguest::Device::Borrow(0), cuguest::IfInactive::kCreate);
  CHECK(acquired.ok());
  CHECK(IsInitialized());
}

void AForkBefore() {
  CHECK(Driver::Get().ok());
  cuguest_test::Fork([] {
    CHECK(!IsInitialized());
    CHECK(Driver::GetInitialized().ok());
    CHECK(IsInitialized());
  });
  CHECK(!IsInitialized());
}

void AForkAfterwards() {
  CHECK(Driver::GetInitialized().ok());
  cuguest_test::Fork([] { CHECK(!IsInitialized()); });
  CHECK(IsInitialized());
}

void CUDA_CB InCallback(void* said) { *static_cast<int*>(said) = IsInitialized() ? 1 : 0; }

void InsideAStreamCallback() {
  const Host host;
  host.Init();
  const CUcontext context = cuguest_test::MakeContext();
  CHECK(host.Find<CUresult(CUcontext)>("cuCtxPushCurrent_v2")(context) == CUDA_SUCCESS);
  int said = -1;
  CHECK(host.Find<CUresult(CUstream, CUhostFn, void*)>("cuLaunchHostFunc")(nullptr, &InCallback,
                                                                           &said) == CUDA_SUCCESS);
  CHECK(host.Find<CUresult()>("cuCtxSynchronize")() == CUDA_SUCCESS);
  CHECK(said == 1);
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(argc, argv,
                                    {
                                        {"nothing_is_loaded", &NothingIsLoaded},
                                        {"a_host_that_only_loads", &AHostThatOnlyLoads},
                                        {"our_own_first_use", &OurOwnFirstUse},
                                        {"an_acquire_initialises", &AnAcquireInitialises},
                                        {"a_fork_before", &AForkBefore},
                                        {"a_fork_afterwards", &AForkAfterwards},
                                        {"inside_a_stream_callback", &InsideAStreamCallback},
                                    });
}
