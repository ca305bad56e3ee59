// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The simulated drivers of each CUDA version: what they claim, export and hand out. What
// each entry's version is, is held against <cudaTypedefs.h> by driver/exports.cc.

#include <boost/test/data/test_case.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "driver/entry_list.h"
#include "test/facts.h"
#include "test/support/child.h"
#include "test/support/files.h"

BOOST_AUTO_TEST_SUITE(driver_version, *cudasim_test::OnlySim())

using namespace cudasim_facts;
using cudasim_test::OnlySim;

namespace {

struct Row {
  std::string base;
  std::string symbol;
  int version;
};

const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = {
#define CUDASIM_TEST_ROW(Base, version, suffix, Function, floor, parameters, arguments) \
  {"cu" #Base, "cu" #Base suffix, version},
#define CUDASIM_TEST_TWIN(Base, version, suffix, twin_version, twin_suffix, Function, floor, \
                          parameters, arguments)                                             \
  {"cu" #Base, "cu" #Base suffix, version},                                                  \
      {"cu" #Base, "cu" #Base suffix "_" #twin_suffix, twin_version},
      CUDASIM_ENTRIES(CUDASIM_TEST_ROW, CUDASIM_TEST_TWIN)
#undef CUDASIM_TEST_TWIN
#undef CUDASIM_TEST_ROW
  };
  return rows;
}

struct Release {
  const char* folder;  // in that of the simulation, whose own is the default
  int version;
};
constexpr Release kReleases[] = {
    {"11.2/", 11020}, {"11.4/", 11040}, {"11.8/", 11080}, {"12.0/", 12000}, {"12.2/", 12020},
    {"12.4/", 12040}, {"12.6/", 12060}, {"12.8/", 12080}, {"", 13000},      {"13.1/", 13010},
    {"13.2/", 13020}, {"13.3/", 13030}, {"13.4/", 13040}, {"13.5/", 13050}};

std::ostream& operator<<(std::ostream& out, const Release& release) {
  return out << release.version;
}

std::string PathOf(const Release& release) {
  return cudasim_test::FindBeside(std::string("sim/") + release.folder + "libcuda.so.1");
}

void* Open(const Release& release) {
  const std::string path = PathOf(release);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  BOOST_TEST_REQUIRE(library != nullptr, "\"" << path << "\" does not load");
  return library;
}

template <typename Function>
Function Symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

using ByVersion = CUresult (*)(const char*, void**, int, cuuint64_t,
                               CUdriverProcAddressQueryResult*);
using ByVersionFirst = CUresult (*)(const char*, void**, int, cuuint64_t);

// By the newest cuGetProcAddress that there is; null for what it does not find.
void* Ask(void* library, const char* name, int version) {
  void* function = nullptr;
  if (const auto ask = Symbol<ByVersion>(library, "cuGetProcAddress_v2")) {
    OK(ask(name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, nullptr));
    return function;
  }
  const CUresult code = Symbol<ByVersionFirst>(library, "cuGetProcAddress")(
      name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  BOOST_TEST((code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_FOUND));
  return code == CUDA_SUCCESS ? function : nullptr;
}

}  // namespace

BOOST_DATA_TEST_CASE(a_driver_exports_what_there_was, kReleases, release) {
  void* library = Open(release);
  int version = 0;
  OK(Symbol<decltype(&::cuDriverGetVersion)>(library, "cuDriverGetVersion")(&version));
  BOOST_TEST(version == release.version);
  size_t missing = 0;
  for (const Row& row : Rows()) {
    const bool exported = dlsym(library, row.symbol.c_str()) != nullptr;
    BOOST_TEST(exported == (row.version <= release.version), row.symbol);
    missing += exported ? 0 : 1;
  }
  BOOST_TEST((missing == 0) == (release.version >= 13050));
}

BOOST_DATA_TEST_CASE(a_driver_hands_out_what_it_exports, kReleases, release) {
  void* library = Open(release);
  if (release.version < 11030) {
    BOOST_TEST(dlsym(library, "cuGetProcAddress") == nullptr);
    BOOST_TEST(dlsym(library, "cuGetProcAddress_v2") == nullptr);
    return;
  }
  std::set<std::string> found;
  for (const Row& row : Rows()) {
    if (row.version <= release.version) found.insert(row.base);
  }
  for (const Row& row : Rows()) {
    BOOST_TEST((Ask(library, row.base.c_str(), release.version) != nullptr) ==
                   (found.count(row.base) != 0),
               row.base);
  }
  // A later version of a name that there is, is not given for the earlier one.
  BOOST_TEST(Ask(library, "cuCtxCreate", release.version) ==
             dlsym(library, release.version < 12050 ? "cuCtxCreate_v3" : "cuCtxCreate_v4"));
  void* function = &found;
  const auto ask = Symbol<ByVersionFirst>(library, "cuGetProcAddress");
  IS(ask("cuInit", &function, release.version + 10, 0), INVALID_VALUE);
  BOOST_TEST(function == &found);
}

BOOST_DATA_TEST_CASE(a_driver_does_not_know_later_codes, kReleases, release) {
  const auto name_of = Symbol<decltype(&::cuGetErrorName)>(Open(release), "cuGetErrorName");
  const auto knows = [&](CUresult code) {
    const char* name = nullptr;
    return name_of(code, &name) == CUDA_SUCCESS && name != nullptr;
  };
  BOOST_TEST(knows(CUDA_ERROR_CONTEXT_IS_DESTROYED));
  BOOST_TEST(knows(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER) == (release.version >= 13000));
  BOOST_TEST(knows(CUDA_ERROR_INVALID_RESOURCE_TYPE) == (release.version >= 12040));
  BOOST_TEST(knows(CUDA_ERROR_INVALID_CLUSTER_SIZE) == (release.version >= 11080));
  BOOST_TEST(knows(CUDA_ERROR_CONTAINED) == (release.version >= 12080));
}

// Each driver in a process of its own, where it is the only one that is initialised.
CHILD(asks_with_later_enumerators) {
  int version = 0;
  CHECK(RAW(cuDriverGetVersion)(&version) == CUDA_SUCCESS);
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  int value = 0;
  const auto attribute = [&](int number) {
    return RAW(cuDeviceGetAttribute)(&value, static_cast<CUdevice_attribute>(number), 0);
  };
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID) ==
        (version < 12020 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS));
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX - 1) ==
        (version < 13000 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS));
  CHECK(attribute(148) == (version < 13010 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED));
  using Create = CUresult (*)(CUcontext*, unsigned, CUdevice);
  CUcontext context = nullptr;
  const CUresult created = RAW_AS(Create, "cuCtxCreate_v2")(&context, CU_CTX_SYNC_MEMOPS, 0);
  CHECK(created == (version < 12010 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS));
  if (created == CUDA_SUCCESS) {
    size_t limit = 0;
    CHECK(RAW(cuCtxGetLimit)(&limit, static_cast<CUlimit>(10)) ==
          (version < 13040 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED));
  }
  if (version >= 11070) {
    CUmoduleLoadingMode mode = {};
    CHECK(RAW(cuModuleGetLoadingMode)(&mode) == CUDA_SUCCESS);
    CHECK(mode == (version < 12020 ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING));
  }
  return 0;
}

BOOST_DATA_TEST_CASE(a_driver_does_not_know_later_enumerators, kReleases, release) {
  const std::string library = PathOf(release);
  const cudasim_test::Ended ended = cudasim_test::RunSelf(
      {"--child=asks_with_later_enumerators"},
      {"LD_LIBRARY_PATH=" + library.substr(0, library.rfind('/')), "CUDA_MODULE_LOADING"});
  BOOST_TEST(ended.code == 0, ended.output);
}

BOOST_AUTO_TEST_SUITE_END()
