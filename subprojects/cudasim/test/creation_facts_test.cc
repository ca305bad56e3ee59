// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What cuCtxCreate takes beside flags: an execution affinity, and the data of a graphics client.
// A context for a graphics client has not been measured: <cuda.h> says what it does.

#include "cudasim/sim.h"
#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(creation_facts)

using namespace cudasim_facts;
using cudasim::Sim;

namespace {

using CreateWithAffinity = CUresult (*)(CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice);

bool HasExecAffinity() {
  int has = 0;
  OK(RAW(cuDeviceGetExecAffinitySupport)(&has, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
  return has != 0;
}

bool HasCig() {
  int has = 0;
  OK(RAW(cuDeviceGetAttribute)(&has, CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED, 0));
  return has != 0;
}

bool HasNoExecAffinity() { return !HasExecAffinity(); }
bool HasNoCig() { return !HasCig(); }
bool MayHaveExecAffinity() { return Sim::IsActive() || HasExecAffinity(); }

// Makes the simulation support both; elsewhere it changes nothing.
struct Supported {
  Supported() { Set(true); }
  ~Supported() { Set(false); }
  static void Set(bool supported) {
    Sim::SupportExecAffinity(supported);
    Sim::SupportCig(supported);
  }
};

unsigned Multiprocessors() {
  int count = 0;
  OK(RAW(cuDeviceGetAttribute)(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  return static_cast<unsigned>(count);
}

CUexecAffinityParam Affinity(unsigned count) {
  CUexecAffinityParam affinity = {};
  affinity.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
  affinity.param.smCount.val = count;
  return affinity;
}

// Of the current context.
unsigned AffinityHere() {
  CUexecAffinityParam affinity = {};
  OK(RAW(cuCtxGetExecAffinity)(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
  BOOST_TEST(affinity.type == CU_EXEC_AFFINITY_TYPE_SM_COUNT);
  return affinity.param.smCount.val;
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_mps_there_is_no_execution_affinity,
                     *cudasim_test::OnlyIf(&HasNoExecAffinity, "needs a process without MPS")) {
  CUexecAffinityParam affinity = Affinity(8);
  CUctxCreateParams parameters = {};
  parameters.execAffinityParams = &affinity;
  parameters.numExecAffinityParams = 1;
  CUcontext context = nullptr;
  IS(RAW_AS(CreateWithAffinity, "cuCtxCreate_v3")(&context, &affinity, 1, 0, 0),
     UNSUPPORTED_EXEC_AFFINITY);
  IS(RAW(cuCtxCreate)(&context, &parameters, 0, 0), UNSUPPORTED_EXEC_AFFINITY);
  BOOST_CHECK(CurrentContext() == nullptr);
}

// MPS may limit every client.
BOOST_AUTO_TEST_CASE(without_an_affinity_it_is_the_whole_device,
                     *cudasim_test::OnlyIf(&HasNoExecAffinity, "needs a process without MPS")) {
  const OwnContext own;
  SetStack({own.get()});
  BOOST_TEST(AffinityHere() == Multiprocessors());
  CUcontext created = nullptr;
  OK(RAW_AS(CreateWithAffinity, "cuCtxCreate_v3")(&created, nullptr, 0, 0, 0));
  BOOST_TEST(AffinityHere() == Multiprocessors());
  OK(RAW(cuCtxDestroy)(created));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(an_affinity_is_rounded_up,
                     *cudasim_test::OnlyIf(&MayHaveExecAffinity, "needs a client of MPS")) {
  const Supported supported;
  BOOST_TEST(HasExecAffinity());
  for (const bool newer : {false, true}) {
    CUexecAffinityParam affinity[] = {Affinity(2), Affinity(7)};  // the last one counts
    CUctxCreateParams parameters = {};
    parameters.execAffinityParams = affinity;
    parameters.numExecAffinityParams = 2;
    CUcontext created = nullptr;
    OK(newer ? RAW(cuCtxCreate)(&created, &parameters, 0, 0)
             : RAW_AS(CreateWithAffinity, "cuCtxCreate_v3")(&created, affinity, 2, 0, 0));
    BOOST_TEST(AffinityHere() == 8u);
    OK(RAW(cuCtxDestroy)(created));
  }
}

BOOST_AUTO_TEST_CASE(cig_needs_support,
                     *cudasim_test::OnlyIf(&HasNoCig, "needs a device without CIG")) {
  char blob[64] = {};
  CUctxCigParam cig = {CIG_DATA_TYPE_NV_BLOB, blob};
  CUctxCreateParams parameters = {};
  parameters.cigParams = &cig;
  CUcontext context = nullptr;
  IS(RAW(cuCtxCreate)(&context, &parameters, 0, 0), NOT_SUPPORTED);
  BOOST_CHECK(CurrentContext() == nullptr);
}

// A real driver reads the data.
BOOST_AUTO_TEST_CASE(a_cig_context_says_so, *cudasim_test::OnlySim()) {
  const Supported supported;
  BOOST_TEST(HasCig());
  char blob[64] = {};
  CUctxCigParam cig = {CIG_DATA_TYPE_NV_BLOB, nullptr};
  CUctxCreateParams parameters = {};
  parameters.cigParams = &cig;
  CUcontext context = nullptr;
  IS(RAW(cuCtxCreate)(&context, &parameters, 0, 0), INVALID_VALUE);
  cig.sharedData = blob;
  OK(RAW(cuCtxCreate)(&context, &parameters, 0, 0));
  size_t enabled = 0;
  OK(RAW(cuCtxGetLimit)(&enabled, CU_LIMIT_CIG_ENABLED));
  BOOST_TEST(enabled == 1u);
  OK(RAW(cuCtxDestroy)(context));
}

BOOST_AUTO_TEST_SUITE_END()
