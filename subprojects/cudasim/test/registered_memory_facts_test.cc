// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The user's own memory, pinned with cuMemHostRegister: whose it is, and how long.

#include <sys/mman.h>

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(registered_memory_facts)

using namespace cudasim_facts;

namespace {

constexpr size_t kPage = 4096;

// Pages that no driver knows.
struct Pages {
  ~Pages() { munmap(base, kSize); }
  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(base); }

  static constexpr size_t kSize = 4 * kPage;
  char* base = static_cast<char*>(
      mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
};

void CheckIsOf(CUcontext context, CUdeviceptr base, size_t size) {
  for (const CUdeviceptr pointer : {base, base + size - 1}) {
    BOOST_CHECK(Attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, pointer) == context);
    BOOST_TEST(Attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) ==
               unsigned{CU_MEMORYTYPE_HOST});
    BOOST_TEST(Attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) == 0);
    BOOST_TEST(!Attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
    BOOST_TEST(Attribute<bool>(CU_POINTER_ATTRIBUTE_MAPPED, pointer));
    BOOST_TEST(Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer) == pointer);
    BOOST_TEST(Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer) == base);
    BOOST_TEST(Attribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer) == size);
  }
  BOOST_TEST(!IsKnown(base + size));
}

unsigned FlagsOf(void* pointer) {
  unsigned flags = 77;
  OK(RAW(cuMemHostGetFlags)(&flags, pointer));
  return flags;
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_needs_a_living_current_context) {
  const Pages pages;
  IS(RAW(cuMemHostRegister)(pages.base, kPage, 0), INVALID_CONTEXT);
  IS(RAW(cuMemHostRegister)(pages.base, kPage, CU_MEMHOSTREGISTER_PORTABLE), INVALID_CONTEXT);
  IS(RAW(cuMemHostRegister)(nullptr, 0, 77), INVALID_CONTEXT);
  BOOST_TEST(!IsActive(0));
  PushDeadContext();
  IS(RAW(cuMemHostRegister)(pages.base, kPage, 0), CONTEXT_IS_DESTROYED);
  IS(RAW(cuMemHostUnregister)(pages.base), CONTEXT_IS_DESTROYED);
  IS(RAW(cuMemFreeHost)(pages.base), CONTEXT_IS_DESTROYED);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(register_checks_its_arguments) {
  const Pages pages;
  const OwnContext context;
  SetStack({context.get()});
  IS(RAW(cuMemHostRegister)(nullptr, kPage, 0), INVALID_VALUE);
  IS(RAW(cuMemHostRegister)(pages.base, 0, 0), INVALID_VALUE);
  IS(RAW(cuMemHostRegister)(pages.base, kPage, 0x100), INVALID_VALUE);
  IS(RAW(cuMemHostRegister)(reinterpret_cast<void*>(0x1000), kPage, 0), INVALID_VALUE);
  IS(RAW(cuMemHostRegister)(pages.base, kPage, CU_MEMHOSTREGISTER_IOMEMORY), INVALID_VALUE);
  IS(RAW(cuMemHostUnregister)(pages.base), HOST_MEMORY_NOT_REGISTERED);
  SetStack({});
  IS(RAW(cuMemHostUnregister)(nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(it_is_the_current_contexts) {
  const Pages pages;
  const OwnContext owner;
  const OwnContext other;
  SetStack({owner.get()});
  OK(RAW(cuMemHostRegister)(pages.base, kPage, 0));
  for (const Entries& stack : {Entries{owner.get()}, Entries{other.get()}, Entries{}}) {
    SetStack(stack);
    CheckIsOf(owner.get(), pages.address(), kPage);
  }
  OK(RAW(cuMemHostUnregister)(pages.base));  // also with nothing current
  BOOST_TEST(!IsKnown(pages.address()));
  IS(RAW(cuMemHostUnregister)(pages.base), HOST_MEMORY_NOT_REGISTERED);
}

BOOST_AUTO_TEST_CASE(a_portable_one_is_its_contexts_too) {
  const Pages pages;
  const OwnContext owner;
  const OwnContext other;
  SetStack({owner.get()});
  constexpr unsigned kFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  OK(RAW(cuMemHostRegister)(pages.base, kPage, kFlags));
  SetStack({other.get()});
  CheckIsOf(owner.get(), pages.address(), kPage);
  BOOST_TEST(FlagsOf(pages.base) == kFlags);
  IS(RAW(cuMemHostRegister)(pages.base, kPage, 0), HOST_MEMORY_ALREADY_REGISTERED);
  OK(RAW(cuMemHostUnregister)(pages.base));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(its_device_pointer_needs_a_current_context) {
  const Pages pages;
  const OwnContext owner;
  const OwnContext other;
  SetStack({owner.get()});
  OK(RAW(cuMemHostRegister)(pages.base, kPage, 0));
  BOOST_TEST(FlagsOf(pages.base) == unsigned{CU_MEMHOSTREGISTER_DEVICEMAP});
  SetStack({other.get()});
  CUdeviceptr device = 0;
  OK(RAW(cuMemHostGetDevicePointer)(&device, pages.base + 100, 0));
  BOOST_TEST(device == pages.address() + 100);
  BOOST_TEST(Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, device) == device);
  SetStack({});
  unsigned flags = 0;
  IS(RAW(cuMemHostGetDevicePointer)(&device, pages.base, 0), INVALID_CONTEXT);
  IS(RAW(cuMemHostGetFlags)(&flags, pages.base), INVALID_CONTEXT);
  IS(GetAttribute(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pages.address(), &device), INVALID_CONTEXT);
  BOOST_TEST(PluralAttribute(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pages.address(), device) == 0u);
  OK(RAW(cuMemHostUnregister)(pages.base));
}

BOOST_AUTO_TEST_CASE(the_device_reaches_it_from_every_context) {
  const Pages pages;
  const OwnContext owner;
  const OwnContext other;
  SetStack({owner.get()});
  OK(RAW(cuMemHostRegister)(pages.base, kPage, 0));
  OK(RAW(cuMemsetD8)(pages.address(), 3, 16));
  OK(RAW(cuCtxSynchronize)());
  BOOST_TEST(int{pages.base[0]} == 3);
  SetStack({other.get()});
  OK(RAW(cuMemsetD8)(pages.address(), 4, 16));
  OK(RAW(cuCtxSynchronize)());
  BOOST_TEST(int{pages.base[0]} == 4);
  IS(RAW(cuMemcpyHtoD)(pages.address(), pages.base + kPage, kPage + 1), INVALID_VALUE);
  OK(RAW(cuMemHostUnregister)(pages.base));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(ranges_are_exact_and_do_not_overlap) {
  const Pages pages;
  const OwnContext context;
  SetStack({context.get()});
  OK(RAW(cuMemHostRegister)(pages.base + 100, 1000, 0));
  BOOST_TEST(!IsKnown(pages.address()));
  CheckIsOf(context.get(), pages.address() + 100, 1000);
  OK(RAW(cuMemHostRegister)(pages.base + 2000, 100, 0));  // of the same page
  IS(RAW(cuMemHostRegister)(pages.base, kPage, 0), HOST_MEMORY_ALREADY_REGISTERED);
  IS(RAW(cuMemHostRegister)(pages.base + 500, kPage, 0), HOST_MEMORY_ALREADY_REGISTERED);
  IS(RAW(cuMemHostUnregister)(pages.base + 200), INVALID_VALUE);
  IS(RAW(cuMemFreeHost)(pages.base + 100), INVALID_VALUE);
  IS(RAW(cuMemFree)(pages.address() + 100), INVALID_VALUE);
  OK(RAW(cuMemHostUnregister)(pages.base + 100));
  OK(RAW(cuMemHostUnregister)(pages.base + 2000));
  SetStack({});
}

// By which a library tells its registration from a later one of the same range.
BOOST_AUTO_TEST_CASE(each_registration_has_an_id) {
  const Pages pages;
  const OwnContext context;
  SetStack({context.get()});
  OK(RAW(cuMemHostRegister)(pages.base, kPage, 0));
  const auto id = [&](size_t offset) {
    return Attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, pages.address() + offset);
  };
  const unsigned long long first = id(0);
  BOOST_TEST(first != 0U);
  BOOST_TEST(id(kPage - 1) == first);
  OK(RAW(cuMemHostUnregister)(pages.base));
  OK(RAW(cuMemHostRegister)(pages.base, kPage, 0));
  BOOST_TEST(id(0) != first);
  OK(RAW(cuMemHostUnregister)(pages.base));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(memory_of_the_driver_is_not_registered) {
  const OwnContext context;
  SetStack({context.get()});
  void* host = nullptr;
  CUdeviceptr device = 0;
  CUdeviceptr managed = 0;
  OK(RAW(cuMemHostAlloc)(&host, kPage, CU_MEMHOSTALLOC_PORTABLE));
  OK(RAW(cuMemAlloc)(&device, kPage));
  OK(RAW(cuMemAllocManaged)(&managed, kPage, CU_MEM_ATTACH_GLOBAL));
  IS(RAW(cuMemHostRegister)(host, kPage, 0), INVALID_VALUE);
  IS(RAW(cuMemHostRegister)(reinterpret_cast<void*>(device), kPage, 0), INVALID_VALUE);
  IS(RAW(cuMemHostRegister)(reinterpret_cast<void*>(managed), kPage, 0), INVALID_VALUE);
  IS(RAW(cuMemHostUnregister)(host), INVALID_VALUE);
  BOOST_TEST(FlagsOf(host) == unsigned{CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(it_goes_with_its_context_also_if_portable) {
  const Pages pages;
  {
    const OwnContext owner;
    SetStack({owner.get()});
    OK(RAW(cuMemHostRegister)(pages.base, kPage, 0));
    OK(RAW(cuMemHostRegister)(pages.base + kPage, kPage, CU_MEMHOSTREGISTER_PORTABLE));
    SetStack({});
  }
  OwnContext::DestroyIdle();
  for (const size_t offset : {size_t{0}, kPage}) {
    BOOST_TEST(!IsKnown(pages.address() + offset));
    IS(RAW(cuMemHostUnregister)(pages.base + offset), HOST_MEMORY_NOT_REGISTERED);
  }
  const OwnContext next;
  SetStack({next.get()});
  OK(RAW(cuMemHostRegister)(pages.base, Pages::kSize, 0));
  CheckIsOf(next.get(), pages.address(), Pages::kSize);
  OK(RAW(cuMemHostUnregister)(pages.base));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(it_goes_with_a_reset_of_the_primary) {
  const Pages pages;
  const OwnContext user;
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  SetStack({primary});
  OK(RAW(cuMemHostRegister)(pages.base, kPage, CU_MEMHOSTREGISTER_PORTABLE));
  SetStack({user.get()});
  OK(RAW(cuMemHostRegister)(pages.base + kPage, kPage, CU_MEMHOSTREGISTER_PORTABLE));
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  BOOST_TEST(!IsKnown(pages.address()));
  CheckIsOf(user.get(), pages.address() + kPage, kPage);
  OK(RAW(cuMemHostUnregister)(pages.base + kPage));
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

BOOST_AUTO_TEST_CASE(under_a_green_context_it_is_the_primarys) {
  const Pages pages;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  OK(RAW(cuGreenCtxCreate)(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  OK(RAW(cuCtxFromGreenCtx)(&context, green));
  SetStack({context});
  OK(RAW(cuMemHostRegister)(pages.base, kPage, 0));
  CheckIsOf(primary, pages.address(), kPage);
  OK(RAW(cuGreenCtxDestroy)(green));
  CheckIsOf(primary, pages.address(), kPage);
  IS(RAW(cuMemHostUnregister)(pages.base), CONTEXT_IS_DESTROYED);
  SetStack({primary});
  OK(RAW(cuMemHostUnregister)(pages.base));
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

BOOST_AUTO_TEST_SUITE_END()
