// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices: what they say of themselves, and which of them a process sees.

#include <cstdlib>
#include <cstring>
#include <string>

#include "test/facts.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(device_facts)

using namespace cudasim_facts;
using cudasim_test::NeedsDevices;
using cudasim_test::OnlySim;

namespace {

int AttributeOf(CUdevice device, CUdevice_attribute attribute) {
  int value = -77;
  OK(RAW(cuDeviceGetAttribute)(&value, attribute, device));
  return value;
}

std::string BusOf(CUdevice device) {
  char id[32] = {};
  OK(RAW(cuDeviceGetPCIBusId)(id, sizeof(id), device));
  return id;
}

}  // namespace

BOOST_AUTO_TEST_CASE(attributes_say_what_can_be_done) {
  for (const CUdevice_attribute attribute :
       {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING}) {
    BOOST_TEST(AttributeOf(0, attribute) == 1, "attribute " << attribute);
  }
  BOOST_TEST(AttributeOf(0, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT) >= 1);
  BOOST_TEST(AttributeOf(0, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH) == 131072);
  BOOST_TEST(AttributeOf(0, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT) == 65536);
  BOOST_TEST(AttributeOf(0, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH) == 131072);
  BOOST_TEST(AttributeOf(0, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS) == 2048);
  BOOST_TEST(AttributeOf(0, CU_DEVICE_ATTRIBUTE_NUMA_ID) == -1);
}

CHILD(is_an_h200) {
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  char name[64] = {};
  CHECK(RAW(cuDeviceGetName)(name, sizeof(name), 0) == CUDA_SUCCESS);
  CHECK(std::strstr(name, "H200") != nullptr);
  int value = 0;
  CHECK(RAW(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0) == CUDA_SUCCESS);
  CHECK(value == 62914560);
  size_t bytes = 0;
  CHECK(RAW(cuDeviceTotalMem)(&bytes, 0) == CUDA_SUCCESS && bytes > size_t{100} << 30);
  CUcontext context = nullptr;
  CHECK(RAW(cuCtxCreate)(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxGetLimit)(&bytes, CU_LIMIT_PERSISTING_L2_CACHE_SIZE) == CUDA_SUCCESS);
  CHECK(bytes == 11796480);
  return 0;
}

BOOST_AUTO_TEST_CASE(the_simulation_is_the_gpu_that_is_asked_for, *OnlySim()) {
  const auto asked = cudasim_test::RunSelf({"--child=is_an_h200"}, {"CUDASIM_GPU=H200"});
  BOOST_TEST(asked.code == 0, asked.output);
  const auto unknown = cudasim_test::RunSelf({"--child=is_an_h200"}, {"CUDASIM_GPU=H300"});
  BOOST_TEST(unknown.output.find("\"H300\" is neither") != std::string::npos, unknown.output);
  BOOST_TEST(AttributeOf(0, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) == 52428800);
}

// -----------------------------------------------------------------------------

// Prints what cuInit gives, and the addresses of the devices that are seen.
CHILD(prints_devices) {
  const CUresult code = RAW(cuInit)(0);
  std::printf("<%d", static_cast<int>(code));
  int count = 0;
  if (code == CUDA_SUCCESS) RAW(cuDeviceGetCount)(&count);
  for (int i = 0; i < count; ++i) {
    char id[32] = {};
    CHECK(RAW(cuDeviceGetPCIBusId)(id, sizeof(id), i) == CUDA_SUCCESS);
    CUdevice again = -1;
    CHECK(RAW(cuDeviceGetByPCIBusId)(&again, id) == CUDA_SUCCESS && again == i);
    std::printf(" %s", id);
  }
  std::printf(">");
  return 0;
}

namespace {

std::string SeenWith(const std::string& list) {
  const auto ended =
      cudasim_test::RunSelf({"--child=prints_devices"}, {"CUDA_VISIBLE_DEVICES=" + list});
  const size_t begin = ended.output.find('<');
  return begin == std::string::npos ? ended.output : ended.output.substr(begin);
}

std::string UuidOf(CUdevice device) {
  CUuuid uuid = {};
  OK(RAW(cuDeviceGetUuid)(&uuid, device));
  std::string text = "GPU";
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += digits;
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(visible_devices_choose_one) {
  const std::string one = "<0 " + BusOf(0) + ">";
  BOOST_TEST(SeenWith("0") == one);
  BOOST_TEST(SeenWith("0,77") == one);  // what follows the invalid one is not seen
  BOOST_TEST(SeenWith("") == "<100>");
  BOOST_TEST(SeenWith("-1") == "<100>");
  BOOST_TEST(SeenWith("77") == "<100>");
  BOOST_TEST(SeenWith("0,0") == "<101>");
  BOOST_TEST(SeenWith(UuidOf(0)) == one);
}

BOOST_AUTO_TEST_CASE(visible_devices_choose_an_order, *NeedsDevices(2)) {
  BOOST_TEST(SeenWith("1") == "<0 " + BusOf(1) + ">");
  BOOST_TEST(SeenWith("1,0") == "<0 " + BusOf(1) + " " + BusOf(0) + ">");
  BOOST_TEST(SeenWith("1,77,0") == "<0 " + BusOf(1) + ">");
  BOOST_TEST(SeenWith(UuidOf(1)) == "<0 " + BusOf(1) + ">");
}

BOOST_AUTO_TEST_SUITE_END()
