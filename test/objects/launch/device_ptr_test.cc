// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/device_ptr.h"

#include <cuda.h>

#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(device_ptr)

namespace {

using cuguest::DevicePtr;
using cuguest::DeviceView;

static_assert(sizeof(DevicePtr<double>) == 8 && alignof(DevicePtr<double>) == 8);
static_assert(std::is_convertible_v<DeviceView<int>, DevicePtr<int>>);
static_assert(std::is_convertible_v<DeviceView<int>, DevicePtr<const int>>);
static_assert(std::is_convertible_v<DeviceView<const int>, DevicePtr<const int>>);
static_assert(std::is_convertible_v<DevicePtr<int>, DevicePtr<const int>>);
static_assert(!std::is_convertible_v<int*, DevicePtr<int>>, "it may be one of the host");
static_assert(std::is_constructible_v<DevicePtr<const int>, int*>);
static_assert(!std::is_convertible_v<DeviceView<const int>, DevicePtr<int>>);
static_assert(!std::is_convertible_v<DevicePtr<const int>, DevicePtr<int>>);
static_assert(!std::is_convertible_v<DeviceView<int>, DevicePtr<unsigned>>);
static_assert(!std::is_convertible_v<CUdeviceptr, DevicePtr<int>>, "a number is not a pointer");
static_assert(std::is_constructible_v<DevicePtr<int>, CUdeviceptr>);
static_assert(std::is_same_v<decltype(DevicePtr(DeviceView<const int>())), DevicePtr<const int>>);
static_assert(std::is_same_v<decltype(DevicePtr(static_cast<int*>(nullptr))), DevicePtr<int>>);

}  // namespace

BOOST_AUTO_TEST_CASE(a_device_pointer_is_its_address) {
  int value = 0;
  const DevicePtr<int> pointer(&value);
  BOOST_TEST(pointer.data() == &value);
  BOOST_TEST(pointer.get() == reinterpret_cast<CUdeviceptr>(&value));
  BOOST_TEST(DevicePtr<int>(pointer.get()).data() == &value);
  BOOST_TEST(DevicePtr<const int>(pointer).data() == &value);
  BOOST_TEST(DevicePtr<int>().get() == 0u);
  BOOST_TEST(DevicePtr(DeviceView<int>()).get() == 0u, "of an empty view");
}

BOOST_AUTO_TEST_SUITE_END()
