// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/devices.h"

#include <cctype>
#include <set>
#include <string>
#include <type_traits>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(devices)

namespace {

using cudasim::Sim;
using cuguest::Device;

static_assert(!std::is_convertible_v<int, Device::Ordinal>, "an int is no ordinal");
static_assert(!std::is_convertible_v<int, Device>, "an int is no device");

}  // namespace

BOOST_AUTO_TEST_CASE(handles_are_the_ordinals) {
  const int count = cuguest::CountDevices().value();
  BOOST_TEST(count >= 1);
  for (int i = 0; i < count; ++i) {
    const Device device = DeviceAt(Device::Ordinal{i}).value();
    BOOST_TEST(device.get() == i);
    BOOST_TEST((device.ordinal() == Device::Ordinal{i}));
    BOOST_TEST((device == Device::Borrow(i)));
  }
}

BOOST_AUTO_TEST_CASE(devices_differ_by_uuid_and_pci_id) {
  const int count = cuguest::CountDevices().value();
  std::set<std::string> uuids;
  std::set<std::string> pci_ids;
  for (int i = 0; i < count; ++i) {
    const Device device = DeviceAt(Device::Ordinal{i}).value();
    BOOST_TEST(!NameOf(device).value().empty());
    const std::string uuid = UuidOf(device).value().ToString();
    BOOST_TEST(uuid.size() == 40);
    BOOST_TEST(absl::StartsWith(uuid, "GPU-"));
    uuids.insert(uuid);
    const std::string pci = PciBusIdOf(device).value();
    BOOST_TEST(pci.size() == 12);
    BOOST_TEST(pci[4] == ':');
    pci_ids.insert(pci);
  }
  BOOST_TEST(uuids.size() == static_cast<std::size_t>(count));
  BOOST_TEST(pci_ids.size() == static_cast<std::size_t>(count));
}

BOOST_AUTO_TEST_CASE(devices_are_found_by_uuid_and_pci_id) {
  const cuguest::testing::UndisturbedScope scope(
      [](const std::string& difference) { BOOST_ERROR(difference); });
  for (int i = 0; i < cuguest::CountDevices().value(); ++i) {
    const Device device = Device::Borrow(i);
    BOOST_TEST((DeviceAt(UuidOf(device).value()).value() == device));
    const std::string pci = PciBusIdOf(device).value();
    std::string lower = pci;
    for (char& letter : lower) letter = static_cast<char>(std::tolower(letter));
    for (const std::string& id : {pci, lower, pci.substr(0, pci.find('.'))}) {
      const auto found = cuguest::DeviceAt(id);
      BOOST_TEST_REQUIRE(found.ok(), id << ": " << found.status().ToString());
      BOOST_TEST((*found == device), id);
    }
    if (absl::StartsWith(pci, "0000:")) {
      BOOST_TEST((cuguest::DeviceAt(pci.substr(5)).value() == device));
    }
  }
}

BOOST_AUTO_TEST_CASE(no_device_is_called_so) {
  const std::string of = "of " + std::to_string(cuguest::CountDevices().value());
  const absl::Status no_uuid = DeviceAt(Device::Uuid()).status();
  BOOST_TEST((no_uuid.code() == absl::StatusCode::kNotFound));
  BOOST_TEST(absl::StrContains(no_uuid.ToString(),
                               "find device GPU-00000000-0000-0000-0000-000000000000, " + of));
  const absl::Status no_place = cuguest::DeviceAt("ffff:ff:1f.7").status();
  BOOST_TEST((cuguest::CodeOf(no_place) == CUDA_ERROR_INVALID_DEVICE));
  BOOST_TEST(absl::StrContains(no_place.ToString(), "find device ffff:ff:1f.7, " + of));
  for (const char* id :
       {"", "nonsense", "0", "65:00", "0000:65:00.0 ", " 0000:65:00.0", "0000:65:00.",
        "0000:65:00.00", "0000:655:00.0", "-1:65:00.0", "0x1:65:0", "0:0:0:0.0"}) {
    const absl::Status status = cuguest::DeviceAt(id).status();
    BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument), id);
    BOOST_TEST(absl::StrContains(status.ToString(), "no PCI id"), id);
  }
}

BOOST_AUTO_TEST_CASE(a_uuid_is_written_as_nvidia_smi_writes_it) {
  cuguest::Device::Uuid uuid;
  for (unsigned i = 0; i < 16; ++i) uuid.bytes[i] = static_cast<unsigned char>(i * 17);
  BOOST_TEST(uuid.ToString() == "GPU-00112233-4455-6677-8899-aabbccddeeff");
  uuid.is_mig = true;
  BOOST_TEST(uuid.ToString() == "MIG-00112233-4455-6677-8899-aabbccddeeff");
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there_says_how_many_are) {
  const int count = cuguest::CountDevices().value();
  for (const int ordinal : {-1, count, 99}) {
    const absl::Status status = DeviceAt(Device::Ordinal{ordinal}).status();
    BOOST_TEST((status.code() == absl::StatusCode::kNotFound));
    BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_INVALID_DEVICE));
    BOOST_TEST(absl::StrContains(std::string(status.message()),
                                 "find device " + std::to_string(ordinal) + ", of " +
                                     std::to_string(count) + " in this process"));
  }
  const Device nobody = Device::Borrow(99);
  BOOST_TEST((cuguest::CodeOf(NameOf(nobody).status()) == CUDA_ERROR_INVALID_DEVICE));
  BOOST_TEST((cuguest::CodeOf(PciBusIdOf(nobody).status()) == CUDA_ERROR_INVALID_DEVICE));
  BOOST_TEST((cuguest::CodeOf(UuidOf(nobody).status()) == CUDA_ERROR_INVALID_DEVICE));
}

BOOST_AUTO_TEST_CASE(the_current_contexts_device) {
  const absl::Status none = cuguest::CurrentDevice().status();
  BOOST_TEST((cuguest::CodeOf(none) == CUDA_ERROR_INVALID_CONTEXT));
  BOOST_TEST((none.code() == absl::StatusCode::kFailedPrecondition));
  const cuguest_test::OwnContext context(0);
  cuguest_test::SetStack({context.get()});
  BOOST_TEST((cuguest::CurrentDevice().value() == Device::Borrow(0)));
  cuguest_test::SetStack({});
}

BOOST_AUTO_TEST_CASE(the_current_contexts_device_when_it_is_the_second,
                     *cuguest_test::NeedsDevices(2)) {
  const cuguest_test::OwnContext context(1);
  cuguest_test::SetStack({context.get()});
  BOOST_TEST((cuguest::CurrentDevice().value() == Device::Borrow(1)));
  cuguest_test::SetStack({});
}

// GPU-0 pollution: a question about a device must not create its primary context.
BOOST_AUTO_TEST_CASE(no_query_disturbs_anything) {
  const cuguest::testing::UndisturbedScope scope(
      [](const std::string& difference) { BOOST_ERROR(difference); });
  for (int i = 0; i < cuguest::CountDevices().value(); ++i) {
    const Device device = DeviceAt(Device::Ordinal{i}).value();
    static_cast<void>(NameOf(device));
    static_cast<void>(PciBusIdOf(device));
    static_cast<void>(UuidOf(device));
  }
  static_cast<void>(cuguest::CurrentDevice());
}

BOOST_AUTO_TEST_CASE(each_failing_call_is_a_status, *cuguest_test::OnlySim()) {
  const Device device = Device::Borrow(0);
  const auto check = [](const char* entry, const auto& query) {
    Sim::FailCall(entry, 1, CUDA_ERROR_UNKNOWN);
    BOOST_TEST((cuguest::CodeOf(query()) == CUDA_ERROR_UNKNOWN), entry);
    Sim::ClearFaults();
  };
  check("cuDeviceGetCount", [] { return cuguest::CountDevices().status(); });
  check("cuDeviceGet", [] { return DeviceAt(Device::Ordinal{0}).status(); });
  check("cuCtxGetDevice", [] { return cuguest::CurrentDevice().status(); });
  check("cuDeviceGetName", [&] { return NameOf(device).status(); });
  check("cuDeviceGetPCIBusId", [&] { return PciBusIdOf(device).status(); });
  check("cuDeviceGetUuid", [&] { return UuidOf(device).status(); });
}

BOOST_AUTO_TEST_SUITE_END()
