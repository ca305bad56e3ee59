// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/driver.h"

#include <cudaTypedefs.h>

#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/status.h"
#include "test/support/files.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(object_driver)

namespace {

using cudasim::Sim;
using cuguest::Driver;
using cuguest::ObjectDriver;

// Note [The version beside each entry]: each signature is the toolkit's own for that name and
// version.
#define CUGUEST_CHECK_OBJECT_SIGNATURE(Name, version, suffix, parameters)                \
  static_assert(std::is_same_v<decltype(ObjectDriver::Name), PFN_cu##Name##_v##version>, \
                "cu" #Name " of " #version);
CUGUEST_REQUIRED_OBJECT_ENTRIES(CUGUEST_CHECK_OBJECT_SIGNATURE)
CUGUEST_OPTIONAL_OBJECT_ENTRIES(CUGUEST_CHECK_OBJECT_SIGNATURE)

// Undoes what a case configures, also when it fails half-way.
struct SimDefaults {
  ~SimDefaults() {
    Sim::SetDriverVersion(13000);
    Sim::HideEntry(nullptr);
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
  const ObjectDriver& table = **ObjectDriver::Get();
#define CUGUEST_CHECK_OBJECT_PRESENT(Name, version, suffix, parameters) \
  BOOST_TEST((table.Name != nullptr), "cu" #Name);                      \
  BOOST_TEST(version <= 7000, "cu" #Name " is newer than CUDA 7.0");
  CUGUEST_REQUIRED_OBJECT_ENTRIES(CUGUEST_CHECK_OBJECT_PRESENT)
}

BOOST_AUTO_TEST_CASE(it_is_the_drivers_table_and_more) {
  const ObjectDriver& table = **ObjectDriver::Get();
  const Driver& driver = **Driver::Get();
  BOOST_TEST(table.version == driver.version);
#define CUGUEST_CHECK_OBJECT_SAME(Name, version, suffix, parameters) \
  BOOST_TEST((table.Name == driver.Name), "cu" #Name);
  CUGUEST_REQUIRED_ENTRIES(CUGUEST_CHECK_OBJECT_SAME)
  CUGUEST_OPTIONAL_ENTRIES(CUGUEST_CHECK_OBJECT_SAME)
}

BOOST_AUTO_TEST_CASE(threads_have_one_table) {
  const ObjectDriver* const first = *ObjectDriver::Get();
  std::vector<std::thread> threads;
  std::vector<const ObjectDriver*> seen(8);
  for (auto& driver : seen) threads.emplace_back([&driver] { driver = *ObjectDriver::Get(); });
  for (std::thread& thread : threads) thread.join();
  for (const ObjectDriver* driver : seen) BOOST_TEST(driver == first);
  BOOST_TEST(*ObjectDriver::GetInitialized() == first);
}

BOOST_AUTO_TEST_CASE(a_missing_required_entry_is_named, *cuguest_test::OnlySim()) {
  const SimDefaults defaults;
#define CUGUEST_CHECK_OBJECT_MISSING(Name, version, suffix, parameters)               \
  {                                                                                   \
    Sim::HideEntry("cu" #Name);                                                       \
    Driver driver;                                                                    \
    BOOST_TEST(Driver::Load("libcuda.so.1", &driver).ok());                           \
    ObjectDriver table;                                                               \
    const absl::Status status = ObjectDriver::Load(driver, &table);                   \
    BOOST_TEST((cuguest::ProblemOf(status) == Driver::Problem::kTooOld), "cu" #Name); \
    BOOST_TEST(absl::StrContains(Text(status), " has no cu" #Name " of CUDA "));      \
    BOOST_TEST((table.Init == nullptr));                                              \
    Sim::HideEntry(nullptr);                                                          \
  }
  CUGUEST_REQUIRED_OBJECT_ENTRIES(CUGUEST_CHECK_OBJECT_MISSING)
}

BOOST_AUTO_TEST_CASE(a_missing_optional_entry_is_named, *cuguest_test::OnlySim()) {
  const SimDefaults defaults;
#define CUGUEST_CHECK_OBJECT_OPTIONAL(Name, version, suffix, parameters)                           \
  {                                                                                                \
    Sim::HideEntry("cu" #Name);                                                                    \
    Driver driver;                                                                                 \
    BOOST_TEST(Driver::Load("libcuda.so.1", &driver).ok());                                        \
    ObjectDriver table;                                                                            \
    BOOST_TEST(ObjectDriver::Load(driver, &table).ok(), "cu" #Name);                               \
    BOOST_TEST((table.Name == nullptr), "cu" #Name);                                               \
    const auto entry = table.Require(&ObjectDriver::Name);                                         \
    BOOST_TEST((cuguest::ProblemOf(entry.status()) == Driver::Problem::kEntryMissing));            \
    BOOST_TEST(absl::StartsWith(Text(entry.status()), "look up cu" #Name ", this driver (CUDA ")); \
    BOOST_TEST(absl::StrContains(Text(entry.status()), WhatIsNeeded(version)));                    \
    Sim::HideEntry(nullptr);                                                                       \
  }
  CUGUEST_OPTIONAL_OBJECT_ENTRIES(CUGUEST_CHECK_OBJECT_OPTIONAL)
  ObjectDriver table;
  BOOST_TEST(ObjectDriver::Load(**Driver::Get(), &table).ok());
  BOOST_TEST(table.Require(&ObjectDriver::MemAllocAsync).ok());
  BOOST_TEST(table.Require(&ObjectDriver::CtxGetId).ok(), "of the driver's own entries");
}

// Drivers before CUDA 11.3 export no cuGetProcAddress at all.
BOOST_AUTO_TEST_CASE(entries_are_found_by_name, *cuguest_test::OnlySim()) {
  const std::string path = cuguest_test::FindBeside("subprojects/cudasim/sim/11.2/libcuda.so.1");
  Driver driver;
  BOOST_TEST_REQUIRE(Driver::Load(path.c_str(), &driver).ok());
  ObjectDriver table;
  const absl::Status status = ObjectDriver::Load(driver, &table);
  BOOST_TEST_REQUIRE(status.ok(), status);
  BOOST_TEST((table.MemAlloc != nullptr));
  BOOST_TEST((table.LibraryLoadData == nullptr));
}

BOOST_AUTO_TEST_SUITE_END()
