// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuGetProcAddress.

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(proc_address_facts)

using namespace cudasim_facts;

namespace {

void* const kUntouched = reinterpret_cast<void*>(0xab);
constexpr auto kUntouchedStatus = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;

struct Answer {
  CUresult code;
  void* function = kUntouched;
  CUdriverProcAddressQueryResult status = kUntouchedStatus;
};

Answer Ask(const char* name, int version, cuuint64_t flags = 0) {
  Answer answer = {};
  answer.code = RAW(cuGetProcAddress)(name, &answer.function, version, flags, &answer.status);
  return answer;
}

void CheckIs(const char* name, int version, const char* symbol, cuuint64_t flags = 0) {
  BOOST_TEST_CONTEXT(name << "@" << version) {
    const Answer answer = Ask(name, version, flags);
    OK(answer.code);
    BOOST_CHECK_EQUAL(answer.status, CU_GET_PROC_ADDRESS_SUCCESS);
    BOOST_CHECK_EQUAL(answer.function, cudasim_test::RawSymbol(symbol));
  }
}

void CheckIsNot(const char* name, int version, CUdriverProcAddressQueryResult status) {
  BOOST_TEST_CONTEXT(name << "@" << version) {
    const Answer answer = Ask(name, version);
    OK(answer.code);
    BOOST_CHECK_EQUAL(answer.status, status);
    BOOST_CHECK(answer.function == nullptr);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_newest_not_newer_than_asked_for) {
  CheckIs("cuInit", 2000, "cuInit");
  CheckIs("cuCtxGetCurrent", 4000, "cuCtxGetCurrent");
  CheckIs("cuCtxGetCurrent", -1, "cuCtxGetCurrent");  // there is no check below
  CheckIs("cuMemAlloc", 3020, "cuMemAlloc_v2");
  CheckIs("cuMemAlloc", 13000, "cuMemAlloc_v2");
  CheckIs("cuCtxCreate", 2000, "cuCtxCreate");
  CheckIs("cuCtxCreate", 3020, "cuCtxCreate_v2");
  CheckIs("cuCtxCreate", 11030, "cuCtxCreate_v2");
  CheckIs("cuCtxCreate", 11040, "cuCtxCreate_v3");
  CheckIs("cuCtxCreate", 12040, "cuCtxCreate_v3");
  CheckIs("cuCtxCreate", 12050, "cuCtxCreate_v4");
  CheckIs("cuCtxCreate", 13000, "cuCtxCreate_v4");
  CheckIs("cuCtxPushCurrent", 2000, "cuCtxPushCurrent");
  CheckIs("cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2");
  CheckIs("cuCtxPopCurrent", 2000, "cuCtxPopCurrent");
  CheckIs("cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2");
  CheckIs("cuCtxDestroy", 2000, "cuCtxDestroy");
  CheckIs("cuCtxDestroy", 4000, "cuCtxDestroy_v2");
  CheckIs("cuCtxAttach", 2000, "cuCtxAttach");
  CheckIs("cuDevicePrimaryCtxRelease", 7000, "cuDevicePrimaryCtxRelease");
  CheckIs("cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2");
  CheckIs("cuDevicePrimaryCtxReset", 7000, "cuDevicePrimaryCtxReset");
  CheckIs("cuDevicePrimaryCtxReset", 11000, "cuDevicePrimaryCtxReset_v2");
  CheckIs("cuDevicePrimaryCtxSetFlags", 7000, "cuDevicePrimaryCtxSetFlags");
  CheckIs("cuDevicePrimaryCtxSetFlags", 11000, "cuDevicePrimaryCtxSetFlags_v2");
  CheckIs("cuEventElapsedTime", 12070, "cuEventElapsedTime");
  CheckIs("cuEventElapsedTime", 12080, "cuEventElapsedTime_v2");
  CheckIs("cuDeviceGetUuid", 9020, "cuDeviceGetUuid");
  CheckIs("cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2");
  CheckIs("cuGetProcAddress", 11030, "cuGetProcAddress");
  CheckIs("cuGetProcAddress", 12000, "cuGetProcAddress_v2");
  CheckIs("cuCtxGetId", 12000, "cuCtxGetId");
}

// The trap: one name, two signatures, and no error.
BOOST_AUTO_TEST_CASE(one_name_may_have_two_signatures) {
  CheckIs("cuCtxGetDevice", 12090, "cuCtxGetDevice");
  CheckIs("cuCtxGetDevice", 13000, "cuCtxGetDevice_v2");
  CheckIs("cuCtxSynchronize", 12000, "cuCtxSynchronize");
  CheckIs("cuCtxSynchronize", 13000, "cuCtxSynchronize_v2");
  CheckIs("cuStreamGetCtx", 9020, "cuStreamGetCtx");
  CheckIs("cuStreamGetCtx", 12040, "cuStreamGetCtx");
  CheckIs("cuStreamGetCtx", 12050, "cuStreamGetCtx_v2");
}

BOOST_AUTO_TEST_CASE(flags_choose_the_default_stream) {
  CheckIs("cuStreamGetCtx", 13000, "cuStreamGetCtx_v2", CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  CheckIs("cuStreamGetCtx", 13000, "cuStreamGetCtx_v2_ptsz",
          CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  CheckIs("cuStreamGetCtx", 13000, "cuStreamGetCtx_v2_ptsz", 3);
  CheckIs("cuCtxGetCurrent", 13000, "cuCtxGetCurrent", 1);
  CheckIs("cuCtxGetCurrent", 13000, "cuCtxGetCurrent", 2);
  for (const cuuint64_t flags : {cuuint64_t{4}, cuuint64_t{0xff}, cuuint64_t{1} << 40}) {
    const Answer answer = Ask("cuStreamGetCtx", 13000, flags);
    IS(answer.code, INVALID_VALUE);
    BOOST_CHECK(answer.function == kUntouched);
  }
}

BOOST_AUTO_TEST_CASE(too_new_for_the_version_asked_for) {
  CheckIsNot("cuCtxGetCurrent", 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  CheckIsNot("cuCtxGetCurrent", 3999, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  CheckIsNot("cuInit", 1999, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  CheckIsNot("cuCtxGetId", 11999, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

BOOST_AUTO_TEST_CASE(names_are_exact_base_names) {
  for (const char* name : {"cuNope", "cuMemAlloc_v2", "cuCtxGetDevice_v2", "cuCtxCreate_v4",
                           "cuCtxGetCurrent_ptsz", "", "cuctxgetcurrent", "cudaMalloc"}) {
    CheckIsNot(name, 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  }
}

BOOST_AUTO_TEST_CASE(newer_than_the_driver_is_invalid) {
  int version = 0;
  OK(RAW(cuDriverGetVersion)(&version));
  for (const int newer : {version + 1, 99999}) {
    const Answer answer = Ask("cuCtxGetCurrent", newer);
    IS(answer.code, INVALID_VALUE);
    BOOST_CHECK(answer.function == kUntouched);
    BOOST_CHECK_EQUAL(answer.status, kUntouchedStatus);
  }
}

BOOST_AUTO_TEST_CASE(the_status_may_be_null) {
  void* function = nullptr;
  OK(RAW(cuGetProcAddress)("cuInit", &function, 13000, 0, nullptr));
  BOOST_CHECK(function != nullptr);
  OK(RAW(cuGetProcAddress)("cuNope", &function, 13000, 0, nullptr));
  BOOST_CHECK(function == nullptr);
}

BOOST_AUTO_TEST_CASE(the_first_form_says_not_found) {
  using First = CUresult (*)(const char*, void**, int, cuuint64_t);
  const First ask = RAW_AS(First, "cuGetProcAddress");
  void* function = kUntouched;
  IS(ask("cuNope", &function, 11030, 0), NOT_FOUND);
  IS(ask("cuCtxGetId", &function, 11030, 0), NOT_FOUND);
  IS(ask("cuCtxGetCurrent", &function, 0, 0), NOT_FOUND);
  IS(ask("cuCtxGetCurrent", &function, 99999, 0), INVALID_VALUE);
  BOOST_CHECK(function == kUntouched);
  OK(ask("cuCtxGetId", &function, 12000, 0));
  OK(ask("cuCtxGetCurrent", &function, 11030, 3));
  BOOST_CHECK_EQUAL(function, cudasim_test::RawSymbol("cuCtxGetCurrent"));
}

BOOST_AUTO_TEST_SUITE_END()
