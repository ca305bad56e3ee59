// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The user's own memory, pinned with cuMemHostRegister: whose it is, and how long.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

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

// A file of a few pages, on a disk: the working directory is that of a build. It is deleted.
class DiskFile {
 public:
  DiskFile() {
    char name[] = "./cudasim-pages-XXXXXX";
    file_ = mkstemp(name);
    BOOST_REQUIRE(file_ >= 0);
    unlink(name);
    BOOST_REQUIRE(ftruncate(file_, Pages::kSize) == 0);
  }
  ~DiskFile() { close(file_); }
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  int get() const { return file_; }

 private:
  int file_ = -1;
};

bool IsOnDisk() {
  constexpr long kTmpfs = 0x01021994;
  struct statfs of = {};
  return statfs(".", &of) == 0 && of.f_type != kTmpfs;
}

// What cuMemHostRegister says of a mapping, which is undone.
CUresult Register(int protection, int mapping, int file, unsigned flags) {
  void* const pages = mmap(nullptr, Pages::kSize, protection, mapping, file, 0);
  BOOST_REQUIRE(pages != MAP_FAILED);
  const CUresult code = RAW(cuMemHostRegister)(pages, Pages::kSize, flags);
  if (code == CUDA_SUCCESS) OK(RAW(cuMemHostUnregister)(pages));
  munmap(pages, Pages::kSize);
  return code;
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

// Measured on an H200, driver 580.159.04, where
// CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED is 1. The kernel keeps pages in place to be
// written only where they may be, and not those of a shared mapping that it writes back to a disk.
BOOST_AUTO_TEST_CASE(pages_of_a_file_on_disk,
                     *cudasim_test::OnlyIf(IsOnDisk, "the working directory is not on a disk")) {
  const OwnContext owner;
  const DiskFile file;
  SetStack({owner.get()});
  constexpr unsigned kReadOnly = CU_MEMHOSTREGISTER_READ_ONLY;
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  for (const int mapping : {MAP_PRIVATE, MAP_SHARED}) {
    IS(Register(PROT_READ, mapping, file.get(), 0), INVALID_VALUE);
    OK(Register(PROT_READ, mapping, file.get(), kReadOnly));
    OK(Register(kBoth, mapping, file.get(), kReadOnly));
  }
  OK(Register(kBoth, MAP_PRIVATE, file.get(), 0));
  IS(Register(kBoth, MAP_SHARED, file.get(), 0), INVALID_VALUE);
  SetStack({});
}

// Not measured: as Linux keeps pages in place (check_vma_flags() in mm/gup.c).
BOOST_AUTO_TEST_CASE(pages_of_memory_that_is_shared) {
  const OwnContext owner;
  SetStack({owner.get()});
  constexpr unsigned kReadOnly = CU_MEMHOSTREGISTER_READ_ONLY;
  constexpr int kShared = MAP_SHARED | MAP_ANONYMOUS;
  for (const unsigned flags : {0u, kReadOnly}) {
    OK(Register(PROT_READ | PROT_WRITE, kShared, -1, flags));
    IS(Register(PROT_NONE, kShared, -1, flags), INVALID_VALUE);
  }
  IS(Register(PROT_READ, kShared, -1, 0), INVALID_VALUE);
  OK(Register(PROT_READ, kShared, -1, kReadOnly));
  SetStack({});
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

// What is allocated on the host, too, although others used it. Measured on an H200, driver
// 580.159.04.
BOOST_AUTO_TEST_CASE(portable_memory_goes_with_its_context) {
  constexpr size_t kBytes = size_t{2} << 20;
  const OwnContext user;
  void* memory = nullptr;
  {
    const OwnContext owner;
    SetStack({owner.get()});
    OK(RAW(cuMemHostAlloc)(&memory, kBytes, CU_MEMHOSTALLOC_PORTABLE));
    SetStack({user.get()});
    CUdeviceptr device = 0;
    OK(RAW(cuMemHostGetDevicePointer)(&device, memory, 0));
    OK(RAW(cuMemsetD8)(device, 1, kBytes));
    OK(RAW(cuCtxSynchronize)());
    SetStack({});
  }
  OwnContext::DestroyIdle();
  BOOST_TEST(!IsKnown(reinterpret_cast<CUdeviceptr>(memory)));
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  BOOST_TEST_REQUIRE(zeros >= 0);
  BOOST_TEST(read(zeros, memory, 16) == -1);
  BOOST_TEST(errno == EFAULT);
  close(zeros);
  IS(RAW(cuMemFreeHost)(memory), INVALID_VALUE);
}

BOOST_AUTO_TEST_SUITE_END()
