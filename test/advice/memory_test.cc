// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What texts of memory, of copies and of pages advise is done.

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "cuguest/objects/array.h"
#include "cuguest/objects/capture_scope.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/pinned_buffer.h"
#include "cuguest/objects/pinned_pages.h"
#include "cuguest/objects/pitched_view.h"
#include "test/objects/memory/buffers.h"
#include "test/support/advised.h"

BOOST_AUTO_TEST_SUITE(memory)

namespace {

using cudasim::Sim;
using cuguest::Array;
using cuguest::CaptureScope;
using cuguest::DeviceBuffer;
using cuguest::DeviceView;
using cuguest::Event;
using cuguest::ExecutableGraph;
using cuguest::HostSpan;
using cuguest::PinnedPages;
using cuguest::Stream;
using cuguest::StreamRef;
using namespace buffers;
using namespace cuguest_test;

// A file of one page of 'w', mapped.
class FilePages {
 public:
  FilePages(int protection, int kind) {
    char name[] = "/tmp/cuguest_advice_XXXXXX";
    const int file = mkstemp(name);
    unlink(name);
    const std::string text(kBytes, 'w');
    BOOST_TEST_REQUIRE(write(file, text.data(), kBytes) == static_cast<ssize_t>(kBytes));
    pages_ = mmap(nullptr, kBytes, protection, kind, file, 0);
    BOOST_TEST_REQUIRE(pages_ != MAP_FAILED);
    close(file);
  }
  FilePages(const FilePages&) = delete;
  FilePages& operator=(const FilePages&) = delete;
  ~FilePages() { munmap(pages_, kBytes); }
  void* get() const { return pages_; }

 private:
  void* pages_;
};

absl::Status Pin(const Owner& owner, void* pages, unsigned flags) {
  return PinnedPages::Pin(owner.ref(), pages, kBytes, flags).status();
}

// Where the simulated driver says `code`.
absl::Status PinRefused(const Owner& owner, void* pages, unsigned flags, CUresult code) {
  Sim::FailCall("cuMemHostRegister", 1, code);
  const absl::Status status = Pin(owner, pages, flags);
  Sim::ClearFaults();
  return status;
}

// Whether FilePages are written back to a disk: pages of a file in memory are pinned as any.
bool AreOnDisk() {
  struct statfs info = {};
  return statfs("/tmp", &info) == 0 && info.f_type != TMPFS_MAGIC;
}

// Pages that are pinned with their flag alone, on a device that has it.
void CheckNeedFlag(int protection, int kind, const char* mapped) {
  const Owner owner;
  const FilePages pages(protection, kind);
  const Undisturbed undisturbed;
  REFUSES(Pin(owner, pages.get(), 0), kInvalidArgument, "flags 0", mapped,
          Advised("pin them with CU_MEMHOSTREGISTER_READ_ONLY, where the device's "
                  "CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED is 1"));
  int is_supported = 0;
  OK(RAW(cuDeviceGetAttribute)(&is_supported, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,
                               0));
  if (is_supported == 0) return SayIsSkipped("needs a device that pins read-only pages");
  SUCCEEDS(Pin(owner, pages.get(), CU_MEMHOSTREGISTER_READ_ONLY));
}

}  // namespace

// vllm-project/vllm-omni#6240, eyalroz/cuda-api-wrappers#527.
BOOST_AUTO_TEST_CASE(read_only_pages_with_their_flag) {
  CheckNeedFlag(PROT_READ, MAP_PRIVATE, "pages mapped r--p from /tmp/cuguest_advice_");
  CheckNeedFlag(PROT_READ, MAP_SHARED, "pages mapped r--s from /tmp/cuguest_advice_");
}

BOOST_AUTO_TEST_CASE(shared_pages_with_their_flag,
                     *OnlyIf(&AreOnDisk, "needs a /tmp that is on a disk")) {
  CheckNeedFlag(PROT_READ | PROT_WRITE, MAP_SHARED, "pages mapped rw-s from /tmp/cuguest_advice_");
}

BOOST_AUTO_TEST_CASE(read_only_pages_without_a_pin, *OnlySim()) {
  const Owner owner;
  const FilePages pages(PROT_READ, MAP_PRIVATE);
  REFUSES(PinRefused(owner, pages.get(), CU_MEMHOSTREGISTER_READ_ONLY, CUDA_ERROR_NOT_SUPPORTED),
          kUnimplemented,
          Advised("CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED is 0; copy from read-only "
                  "pages as they are, not pinned"));
  auto buffer = DeviceBuffer<char>::Allocate(owner.ref(), kBytes).value();
  SUCCEEDS(
      Upload(buffer.view(), HostSpan<const char>(static_cast<const char*>(pages.get()), kBytes)));
  std::vector<char> back(kBytes);
  SUCCEEDS(Download(buffer.view(), back));
  BOOST_TEST((back == std::vector<char>(kBytes, 'w')));
}

// Other refusals say how the pages are mapped, and nothing of flags that would not help.
BOOST_AUTO_TEST_CASE(pages_that_no_flag_helps, *OnlySim()) {
  const Owner owner;
  const auto says_flag = [](const absl::Status& status) {
    return absl::StrContains(std::string(status.message()), "pin them with");
  };
  const FilePages writable(PROT_READ | PROT_WRITE, MAP_PRIVATE);
  const absl::Status plain = PinRefused(owner, writable.get(), 0, CUDA_ERROR_INVALID_VALUE);
  REFUSES(plain, kInvalidArgument, "pages mapped rw-p from /tmp/cuguest_advice_");
  BOOST_TEST(!says_flag(plain));
  const FilePages constant(PROT_READ, MAP_PRIVATE);
  for (const auto& [flags, code] :
       {std::pair<unsigned, CUresult>{CU_MEMHOSTREGISTER_READ_ONLY, CUDA_ERROR_INVALID_VALUE},
        {0, CUDA_ERROR_NOT_SUPPORTED},
        {0, CUDA_ERROR_OUT_OF_MEMORY}}) {
    const absl::Status status = PinRefused(owner, constant.get(), flags, code);
    BOOST_TEST((!status.ok() && !says_flag(status)), status.ToString());
  }
}

BOOST_AUTO_TEST_CASE(copy_with_ends_of_different_lengths) {
  const Owner owner;
  Buffer buffer = Allocated(owner);
  const Ints values(kInts / 2, 5);
  REFUSES(Upload(buffer.view(), values), kInvalidArgument,
          Advised("take a Subview of the longer end"));
  SUCCEEDS(Upload(buffer.view().Subview(0, kInts / 2).value(), values));
}

BOOST_AUTO_TEST_CASE(truth_values_of_a_vector) {
  const Owner owner;
  auto buffer = DeviceBuffer<bool>::Allocate(owner.ref(), 8).value();
  SUCCEEDS(Zero(buffer.view()));
  static_cast<void>(Advised("give a HostSpan<bool>"));  // so says the compiler of a vector<bool>
  bool values[8] = {true, true, true, true, true, true, true, true};
  SUCCEEDS(Download(buffer.view(), HostSpan<bool>(values)));
  BOOST_TEST(!values[7]);
}

BOOST_AUTO_TEST_CASE(pictures_of_different_sizes) {
  const Owner owner;
  Buffer to = Allocated(owner);
  Buffer from = Allocated(owner);
  const auto large = cuguest::PitchedView<int>::Of(to.view(), 8, 8).value();
  const auto small = cuguest::PitchedView<int>::Of(from.view(), 8, 4).value();
  REFUSES(cuguest::Copy(large, small), kInvalidArgument, Advised("take a Subview of the larger"));
  SUCCEEDS(cuguest::Copy(large.Subview(0, 0, 8, 4).value(), small));
}

BOOST_AUTO_TEST_CASE(asynchronous_copy_beside_a_capture) {
  const Owner owner;
  Buffer buffer = Allocated(owner);
  const Stream blocking = Stream::Create(owner.ref(), CU_STREAM_DEFAULT).value();
  const Ints values(kInts, 7);
  const Capture capture(blocking.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  REFUSES(Upload(buffer.view(), values), kFailedPrecondition,
          Advised("a blocking stream of its context captures: use the Async form on another "
                  "stream"));
  SUCCEEDS(UploadAsync(buffer.view(), values, Ref(owner)));
  SUCCEEDS(Ref(owner).Synchronize());
}

BOOST_AUTO_TEST_CASE(memory_that_is_only_read) {
  const Owner owner;
  const Virtual range(2);
  const CUdeviceptr memory = range.Map(0, CU_MEM_ACCESS_FLAGS_PROT_READ);
  range.Map(1, CU_MEM_ACCESS_FLAGS_PROT_READ);
  const auto borrowed = [&] { return DeviceView<int>::Borrow(memory, kInts).status(); };
  REFUSES(borrowed(), kFailedPrecondition,
          Advised("Give it access with cuMemSetAccess, or a view of const"));
  SUCCEEDS(DeviceView<const int>::Borrow(memory, kInts).status());
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(RAW(cuMemSetAccess)(memory, kUnit, &access, 1));
  SUCCEEDS(borrowed());
}

BOOST_AUTO_TEST_CASE(freed_after_a_capture_or_elsewhere,
                     *NeedsDriver(11040, "cuGraphInstantiateWithFlags")) {
  const Owner owner;
  const Owner other;
  const cuuint64_t before = BytesOfPool();
  Buffer now = Made(Buffer::AllocateAsync(Ref(owner), kInts));
  Buffer later = Made(Buffer::AllocateAsync(Ref(owner), kInts));
  Buffer captured = Made(Buffer::AllocateAsync(Ref(owner), kInts));
  Event worked = Event::Create(owner.ref()).value();
  SUCCEEDS(FillAsync(now.view(), 1, Ref(owner)));
  SUCCEEDS(worked.Record(Ref(owner)));
  CaptureScope capture = CaptureScope::Begin(Ref(owner)).value();
  SUCCEEDS(FillAsync(captured.view(), 7, Ref(owner)));
  for (Buffer* buffer : {&now, &later, &captured}) {
    REFUSES(buffer->Release(), kFailedPrecondition,
            Advised("free it when the capture is over, or in the order of another stream that "
                    "waits for its work; what the captured graph uses, when the graph is not "
                    "launched any more"));
  }
  SUCCEEDS(Ref(other).WaitFor(worked));
  SUCCEEDS(now.FreeAsync(Ref(other)));
  {
    ExecutableGraph ready = capture.End().value().Instantiate().value();
    SUCCEEDS(later.Release());
    for (int i = 0; i < 2; ++i) SUCCEEDS(ready.Launch(Ref(owner)));
    Ints values(kInts);
    SUCCEEDS(DownloadAsync(captured.view(), values, Ref(owner)));
    SUCCEEDS(Ref(owner).Synchronize());
    BOOST_TEST((values == Ints(kInts, 7)));
  }
  SUCCEEDS(captured.Release());
  SUCCEEDS(Ref(owner).Synchronize());
  SUCCEEDS(Ref(other).Synchronize());
  BOOST_TEST(BytesOfPool() == before);
}

BOOST_AUTO_TEST_CASE(memory_whose_streams_context_is_over) {
  const Owner owner;
  for (const bool at_once : {false, true}) {
    Buffer buffer = Allocated(owner);
    StreamRef ended;
    {
      const Owner other;
      ended = Ref(other);
    }
    OwnContext::DestroyIdle();
    REFUSES(buffer.FreeAsync(ended), kFailedPrecondition,
            Advised("free it in the order of another stream, or at once where its work is done"));
    const CUdeviceptr pointer = buffer.get();
    SUCCEEDS(at_once ? buffer.Release() : buffer.FreeAsync(Ref(owner)));
    SUCCEEDS(Ref(owner).Synchronize());
    BOOST_TEST(!IsThere(pointer));
  }
}

BOOST_AUTO_TEST_CASE(memory_of_another_threads_default_stream) {
  const Owner owner;
  const StreamRef per_thread = StreamRef::Borrow(CU_STREAM_PER_THREAD, owner.ref());
  Buffer here = Made(Buffer::AllocateAsync(per_thread, kInts));
  Buffer there = Made(Buffer::AllocateAsync(per_thread, kInts));
  std::thread([&] {
    for (Buffer* buffer : {&here, &there}) {
      REFUSES(buffer->Release(), kFailedPrecondition,
              Advised("free it on that thread, or with FreeAsync() in a stream that waits for its "
                      "work"));
    }
    // Stream 0 waits for the streams of every thread.
    SUCCEEDS(there.FreeAsync(StreamRef::Borrow(CU_STREAM_LEGACY, owner.ref())));
  }).join();
  SUCCEEDS(here.Release());
  SUCCEEDS(StreamRef::Borrow(CU_STREAM_LEGACY, owner.ref()).Synchronize());
}

BOOST_AUTO_TEST_CASE(pinned_memory_is_not_adopted) {
  const Owner owner;
  auto pinned = cuguest::PinnedBuffer<int>::Allocate(owner.ref(), kInts).value();
  REFUSES(Buffer::Adopt(AddressOf(pinned.data()), kInts).status(), kInvalidArgument,
          Advised("it is not freed like device memory; borrow a view"));
  SUCCEEDS(DeviceView<int>::Borrow(pinned.data(), kInts).status());
}

BOOST_AUTO_TEST_CASE(packed_elements_of_an_array) {
  const Owner owner;
  CUDA_ARRAY3D_DESCRIPTOR shape = {8, 4, 0, CU_AD_FORMAT_UNORM_INT8X4, 4, 0};
  const Array array = Array::Create(owner.ref(), shape).value();
  std::vector<float> out(32, 1);
  REFUSES(Download(array, HostSpan<float>(out.data(), out.size())), kUnimplemented,
          Advised("use cuMemcpy3D"));
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array.get();
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = out.data();
  copy.dstPitch = 8 * 4;
  copy.WidthInBytes = 8 * 4;
  copy.Height = 4;
  copy.Depth = 1;
  owner.Enter();
  const CUresult code = RAW(cuMemcpy3D)(&copy);
  SetStack({});
  OK(code);
}

BOOST_AUTO_TEST_SUITE_END()
