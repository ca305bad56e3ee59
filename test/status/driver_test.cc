// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/driver.h"

#include <cudaTypedefs.h>

#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/status.h"
#include "test/support/files.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(driver)

namespace {

using cudasim::Sim;
using cuguest::Driver;

#if CUDA_VERSION < 13010  // nothing to hold it against
using PFN_cuDevSmResourceSplit_v13010 = decltype(Driver::DevSmResourceSplit);
#endif

// Note [The version beside each entry]: each signature of the table is the toolkit's own
// for that name and version.
#define CUGUEST_CHECK_SIGNATURE(Name, version, suffix, parameters)                 \
  static_assert(std::is_same_v<decltype(Driver::Name), PFN_cu##Name##_v##version>, \
                "cu" #Name " of " #version);
CUGUEST_REQUIRED_ENTRIES(CUGUEST_CHECK_SIGNATURE)
CUGUEST_OPTIONAL_ENTRIES(CUGUEST_CHECK_SIGNATURE)
#if CUDA_VERSION >= 13000
static_assert(std::is_same_v<decltype(Driver::CtxGetDeviceOf), PFN_cuCtxGetDevice_v13000>);
#endif

// Undoes what a case configures, also when it fails half-way.
struct SimDefaults {
  ~SimDefaults() {
    Sim::SetDriverVersion(13000);
    Sim::HideEntry(nullptr);
    Sim::ClearFaults();
  }
};

// Of a driver of CUDA 13.0, for an entry of `version` that it does not give.
const char* WhatIsNeeded(int version) {
  return version > 13000 ? " or newer is needed"
                         : "; a driver of CUDA 13.0 has it, and what answers";
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

BOOST_AUTO_TEST_CASE(required_entries_are_never_null) {
  const Driver& table = **Driver::Get();
#define CUGUEST_CHECK_PRESENT(Name, version, suffix, parameters) \
  BOOST_TEST((table.Name != nullptr), "cu" #Name);               \
  BOOST_TEST((version <= 7000 || std::string(suffix).empty()),   \
             "cu" #Name " is newer than CUDA 7.0 and has no older export");
  CUGUEST_REQUIRED_ENTRIES(CUGUEST_CHECK_PRESENT)
  BOOST_TEST(table.version >= 7000);
}

BOOST_AUTO_TEST_CASE(get_is_one_table_for_the_process_from_any_thread) {
  const Driver* first = *Driver::Get();
  std::vector<std::thread> threads;
  std::vector<const Driver*> seen(8);
  for (auto& driver : seen) threads.emplace_back([&driver] { driver = *Driver::Get(); });
  for (std::thread& thread : threads) thread.join();
  for (const Driver* driver : seen) BOOST_TEST(driver == first);
  BOOST_TEST(*Driver::GetInitialized() == first);
}

BOOST_AUTO_TEST_CASE(a_missing_library_says_the_loaders_words) {
  Driver table;
  const absl::Status status = Driver::Load("libcuda-that-is-not-there.so.1", &table);
  BOOST_TEST((status.code() == absl::StatusCode::kUnavailable));
  BOOST_TEST((cuguest::ProblemOf(status) == Driver::Problem::kNoLibrary));
  BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_SHARED_OBJECT_INIT_FAILED));
  BOOST_TEST(absl::StrContains(Text(status), "libcuda-that-is-not-there.so.1"));
  BOOST_TEST((table.Init == nullptr));
}

BOOST_AUTO_TEST_CASE(a_library_that_is_no_driver_is_too_old) {
  Driver table;
  const absl::Status status = Driver::Load("libm.so.6", &table);
  BOOST_TEST((cuguest::ProblemOf(status) == Driver::Problem::kTooOld));
  BOOST_TEST((status.code() == absl::StatusCode::kUnimplemented));
  BOOST_TEST(absl::StrContains(Text(status), "libm.so.6 (of unknown version) has no cuInit"));
}

// The toolkit ships the stub it links programs with; a container that has it on its
// library path meets it instead of the driver.
BOOST_AUTO_TEST_CASE(the_toolkits_stub_is_named,
                     *cuguest_test::OnlyIf([] { return !cuguest_test::FindToolkitStub().empty(); },
                                           "needs the toolkit's stub libcuda.so")) {
  const std::string stub = cuguest_test::FindToolkitStub();
  Driver table;
  const absl::Status status = Driver::Load(stub.c_str(), &table);
  BOOST_TEST((cuguest::ProblemOf(status) == Driver::Problem::kStub));
  BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_STUB_LIBRARY));
  BOOST_TEST(absl::StrContains(Text(status), stub));
  BOOST_TEST(absl::StrContains(Text(status), "LD_LIBRARY_PATH"));
}

BOOST_AUTO_TEST_CASE(each_missing_required_entry_is_named, *cuguest_test::OnlySim()) {
  const SimDefaults defaults;
#define CUGUEST_CHECK_MISSING(Name, version, suffix, parameters)                      \
  {                                                                                   \
    Sim::HideEntry("cu" #Name);                                                       \
    Driver table;                                                                     \
    const absl::Status status = Driver::Load("libcuda.so.1", &table);                 \
    BOOST_TEST((cuguest::ProblemOf(status) == Driver::Problem::kTooOld), "cu" #Name); \
    BOOST_TEST(absl::StrContains(Text(status), " has no cu" #Name " of CUDA "));      \
    Sim::HideEntry(nullptr);                                                          \
  }
  CUGUEST_REQUIRED_ENTRIES(CUGUEST_CHECK_MISSING)
}

BOOST_AUTO_TEST_CASE(each_missing_optional_entry_is_named_when_asked_for,
                     *cuguest_test::OnlySim()) {
  const SimDefaults defaults;
#define CUGUEST_CHECK_OPTIONAL(Name, version, suffix, parameters)                                  \
  {                                                                                                \
    Sim::HideEntry("cu" #Name);                                                                    \
    Driver table;                                                                                  \
    BOOST_TEST(Driver::Load("libcuda.so.1", &table).ok(), "cu" #Name);                             \
    BOOST_TEST((table.Name == nullptr), "cu" #Name);                                               \
    const auto entry = table.Require(&Driver::Name);                                               \
    BOOST_TEST((cuguest::ProblemOf(entry.status()) == Driver::Problem::kEntryMissing));            \
    BOOST_TEST((entry.status().code() == absl::StatusCode::kUnimplemented));                       \
    BOOST_TEST(absl::StartsWith(Text(entry.status()), "look up cu" #Name ", this driver (CUDA ")); \
    BOOST_TEST(absl::StrContains(Text(entry.status()), WhatIsNeeded(version)));                    \
    Sim::HideEntry(nullptr);                                                                       \
  }
  CUGUEST_OPTIONAL_ENTRIES(CUGUEST_CHECK_OPTIONAL)
}

BOOST_AUTO_TEST_CASE(an_old_driver_lacks_what_came_later, *cuguest_test::OnlySim()) {
  const SimDefaults defaults;
  Sim::SetDriverVersion(11040);
  Driver table;
  BOOST_TEST(Driver::Load("libcuda.so.1", &table).ok());
  BOOST_TEST(table.version == 11040);
  BOOST_TEST((table.CtxGetId == nullptr));
  BOOST_TEST((table.StreamGetCtx != nullptr));
  const absl::Status status = table.Require(&Driver::CtxGetId).status();
  BOOST_TEST(absl::StrContains(Text(status),
                               "look up cuCtxGetId, this driver (CUDA 11.4) has no cuCtxGetId of "
                               "CUDA 12.0; driver 525.60.13 or newer is needed"));
  Sim::SetDriverVersion(6050);
  const absl::Status too_old = Driver::Load("libcuda.so.1", &table);
  BOOST_TEST((cuguest::ProblemOf(too_old) == Driver::Problem::kTooOld));
  BOOST_TEST(absl::StrContains(Text(too_old), "(CUDA 6.5) has no cuCtxGetFlags of CUDA 7.0"));
  BOOST_TEST(absl::StrContains(Text(too_old), "driver 346.46 or newer is needed"));
  BOOST_TEST(table.version == 11040, "a failed load changed the table");
}

// Drivers before CUDA 11.3 export no cuGetProcAddress at all.
BOOST_AUTO_TEST_CASE(entries_are_found_by_name_where_there_is_no_get_proc_address,
                     *cuguest_test::OnlySim()) {
  const std::string path = cuguest_test::FindBeside("subprojects/cudasim/sim/11.2/libcuda.so.1");
  Driver table;
  const absl::Status status = Driver::Load(path.c_str(), &table);
  BOOST_TEST_REQUIRE(status.ok(), status);
  BOOST_TEST((table.CtxPushCurrent != nullptr));
  BOOST_TEST(table.version == 11020);
  BOOST_TEST((table.CtxGetId == nullptr));
  BOOST_TEST(table.Init(0) == CUDA_SUCCESS);
  CUcontext current = nullptr;
  BOOST_TEST(table.CtxGetCurrent(&current) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(what_is_there_is_given) {
  const Driver& table = **Driver::Get();
  const auto entry = table.Require(&Driver::CtxPushCurrent);
  BOOST_TEST_REQUIRE(entry.ok());
  BOOST_TEST((*entry == table.CtxPushCurrent));
}

BOOST_AUTO_TEST_CASE(find_gives_what_the_table_does_not_list) {
  const Driver& table = **Driver::Get();
  const auto known = table.Find<PFN_cuCtxPushCurrent_v4000>("cuCtxPushCurrent", 4000);
  BOOST_TEST_REQUIRE(known.ok(), known.status());
  BOOST_TEST((*known == table.CtxPushCurrent));
  const auto other = table.Find<PFN_cuGraphCreate_v10000>("cuGraphCreate", 10000);
  BOOST_TEST_REQUIRE(other.ok(), other.status());
  BOOST_TEST((*other != nullptr));
}

BOOST_AUTO_TEST_CASE(find_names_what_the_driver_lacks) {
  const Driver& table = **Driver::Get();
  const absl::Status none = table.Find<PFN_cuInit_v2000>("cuNoSuchFunction", 11000).status();
  BOOST_TEST((cuguest::ProblemOf(none) == Driver::Problem::kEntryMissing));
  BOOST_TEST((none.code() == absl::StatusCode::kUnimplemented));
  BOOST_TEST(absl::StrContains(Text(none), "has no cuNoSuchFunction of CUDA 11.0"));
  // A version newer than the driver's.
  const absl::Status newer = table.Find<PFN_cuInit_v2000>("cuInit", 99000).status();
  BOOST_TEST((cuguest::ProblemOf(newer) == Driver::Problem::kEntryMissing));
}

BOOST_AUTO_TEST_CASE(find_refuses_bad_input) {
  const Driver& table = **Driver::Get();
  for (const auto& [name, version] :
       {std::pair<const char*, int>{nullptr, 2000}, {"cuInit", 0}, {"cuInit", -1}}) {
    const auto found = table.Find<PFN_cuInit_v2000>(name, version);
    BOOST_TEST((found.status().code() == absl::StatusCode::kInvalidArgument));
  }
  const Driver empty;
  BOOST_TEST((empty.Find<PFN_cuInit_v2000>("cuInit", 2000).status().code() ==
              absl::StatusCode::kInvalidArgument));
}

// Without cuGetProcAddress nothing tells which signature is behind a symbol.
BOOST_AUTO_TEST_CASE(find_without_get_proc_address_knows_the_table_only, *cuguest_test::OnlySim()) {
  const std::string path = cuguest_test::FindBeside("subprojects/cudasim/sim/11.2/libcuda.so.1");
  Driver table;
  BOOST_TEST_REQUIRE(Driver::Load(path.c_str(), &table).ok());
  const auto listed = table.Find<PFN_cuCtxPushCurrent_v4000>("cuCtxPushCurrent", 4000);
  BOOST_TEST_REQUIRE(listed.ok(), listed.status());
  BOOST_TEST((*listed == table.CtxPushCurrent));
  const auto other = table.Find<PFN_cuCtxPushCurrent_v4000>("cuCtxPushCurrent", 13000);
  BOOST_TEST((cuguest::ProblemOf(other.status()) == Driver::Problem::kEntryMissing));
}

BOOST_AUTO_TEST_CASE(a_foreign_status_is_no_problem_of_the_driver) {
  BOOST_TEST((cuguest::ProblemOf(absl::OkStatus()) == Driver::Problem::kNone));
  BOOST_TEST((cuguest::ProblemOf(absl::InternalError("theirs")) == Driver::Problem::kNone));
}

BOOST_AUTO_TEST_SUITE_END()
