// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of another process, and memory that another process opens.

#include "cuguest/objects/imported_buffer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "cuguest/acquired_guard.h"
#include "cuguest/incident.h"
#include "cuguest/objects/copy.h"
#include "test/objects/memory/buffers.h"
#include "test/support/advised.h"
#include "test/support/peer.h"

BOOST_AUTO_TEST_SUITE(imported_buffer)

namespace {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Describe;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::DeviceView;
using cuguest::ExportedMemory;
using cuguest::Fill;
using cuguest::ImportedBuffer;
using cuguest::MemoryDescription;
using namespace buffers;
using namespace cuguest_test;
using Bytes = ImportedBuffer<unsigned char>;

constexpr size_t kAll = PeerMail::kBytes;

static_assert(!std::is_copy_constructible_v<Bytes> && !std::is_copy_assignable_v<Bytes>);
static_assert(std::is_nothrow_move_constructible_v<Bytes>);
static_assert(std::is_nothrow_move_assignable_v<Bytes>);

ExportedMemory PartOf(const Peer& peer, size_t offset = 0, size_t bytes = kAll) {
  ExportedMemory part;
  part.handle = peer.mail().memory;
  part.offset = offset;
  part.bytes = bytes;
  return part;
}

template <typename T = unsigned char>
ImportedBuffer<T> Imported(const Owner& owner, const ExportedMemory& memory) {
  absl::StatusOr<ImportedBuffer<T>> buffer = ImportedBuffer<T>::Import(owner.ref(), memory);
  BOOST_TEST_REQUIRE(buffer.ok(), buffer.status().ToString());
  return *std::move(buffer);
}

bool Holds(const Bytes& buffer, unsigned char value) {
  std::vector<unsigned char> bytes(buffer.size());
  SUCCEEDS(Download(buffer.view(), bytes));
  return bytes == std::vector<unsigned char>(buffer.size(), value);
}

// A variable of a child's environment.
constexpr char kExported[] = "CUGUEST_TEST_EXPORTED";

// What has no handle of cuIpcGetMemHandle is shared by descriptors, and needs no owner of its own.
constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr char kPoolDescriptor[] = "CUGUEST_TEST_POOL";
constexpr char kPoolPointer[] = "CUGUEST_TEST_POINTER";

void* ToHandle(int descriptor) {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
}

CUmemGenericAllocationHandle CreateShared() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = kDescriptor;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  OK(RAW(cuMemCreate)(&handle, kUnit, &properties, 0));
  return handle;
}

// Takes the handle.
void MapAt(CUdeviceptr address, CUmemGenericAllocationHandle handle) {
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(RAW(cuMemMap)(address, kUnit, 0, handle, 0));
  OK(RAW(cuMemRelease)(handle));
  OK(RAW(cuMemSetAccess)(address, kUnit, &access, 1));
}

}  // namespace

CHILD(is_a_peer) { return cuguest_test::ServeAsPeer(); }

BOOST_AUTO_TEST_CASE(in_its_context_whatever_is_current) {
  Peer peer;
  const Owner owner;
  const OwnContext other;
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{owner.get(), other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    Bytes buffer = Imported(owner, PartOf(peer));
    BOOST_TEST(buffer.size() == kAll);
    BOOST_TEST(buffer.size_bytes() == kAll);
    BOOST_TEST((buffer.context() == owner.ref()));
    BOOST_TEST((buffer.device() == Device::Borrow(0)));
    const auto memory = Describe(buffer.get());
    BOOST_TEST((memory->kind == MemoryDescription::Kind::kDevice));
    BOOST_TEST((memory->context == owner.ref()));
    BOOST_TEST(cuguest::AcquireFromBuffer(buffer).ok());
    const unsigned char before = stack.empty() ? PeerMail::kValue : 7;
    BOOST_TEST(Holds(std::as_const(buffer), before));
    SUCCEEDS(Fill(buffer.view(), static_cast<unsigned char>(7)));
    BOOST_TEST(peer.Ask(PeerDo::kReadLast) == 7);
    const CUdeviceptr pointer = buffer.get();
    SUCCEEDS(buffer.Release());
    BOOST_TEST(buffer.empty());
    BOOST_TEST(buffer.get() == 0U);
    BOOST_TEST(!IsThere(pointer));
    SUCCEEDS(buffer.Release());
  }
  SetStack({});
}

// As openucx/ucx#10618 would have it: by a thread where nothing, or another context, is current.
BOOST_AUTO_TEST_CASE(closed_on_another_thread) {
  Peer peer;
  const Owner owner;
  const OwnContext other;
  for (const Stack& stack : {Stack{}, Stack{other.get()}}) {
    const Undisturbed undisturbed;
    Bytes buffer = Imported(owner, PartOf(peer));
    const CUdeviceptr pointer = buffer.get();
    std::thread([&] {
      SetStack(stack);
      { const Bytes taken = std::move(buffer); }
      BOOST_TEST((GetStack() == stack));
      SetStack({});
    }).join();
    BOOST_TEST(!IsThere(pointer));
  }
}

BOOST_AUTO_TEST_CASE(imported_twice_it_is_closed_twice) {
  Peer peer;
  const Owner owner;
  const Undisturbed undisturbed;
  Bytes first = Imported(owner, PartOf(peer));
  Bytes second = Imported(owner, PartOf(peer, kAll / 2, kAll / 2));
  BOOST_TEST(second.get() == first.get() + kAll / 2);
  SUCCEEDS(first.Release());
  BOOST_TEST(Holds(second, PeerMail::kValue));
  const CUdeviceptr pointer = second.get();
  SUCCEEDS(second.Release());
  BOOST_TEST(!IsThere(pointer));
}

// As NVIDIA/Fuser#3799 and kvcache-ai/Mooncake#1622 had it: a handle is of the whole allocation.
BOOST_AUTO_TEST_CASE(a_part_of_an_allocation) {
  Peer peer;
  const Owner owner;
  const Undisturbed undisturbed;
  {
    auto half = Imported<int>(owner, PartOf(peer, kAll / 2, kAll / 2));
    BOOST_TEST(half.size() == kAll / 2 / sizeof(int));
    SUCCEEDS(Fill(half.view(), 0x22222222));
    BOOST_TEST(peer.Ask(PeerDo::kReadLast) == 0x22);
    BOOST_TEST(peer.Ask(PeerDo::kReadFirst) == PeerMail::kValue);
  }
  const auto refused = [&](size_t offset, size_t bytes) {
    return ImportedBuffer<int>::Import(owner.ref(), PartOf(peer, offset, bytes)).status();
  };
  for (const size_t offset : {kAll, kAll / 2 + 4, ~size_t{3}}) {
    REFUSES(refused(offset, kAll / 2), kInvalidArgument, "import 1048576 bytes from byte ",
            "device memory of device 0", "that is not all there");
  }
  REFUSES(refused(0, kAll + 4), kInvalidArgument, "that is not all there");
  REFUSES(refused(2, 4), kInvalidArgument, "not aligned to 4 bytes");
  REFUSES(refused(0, 0), kInvalidArgument, "import 0 bytes", "elements of 4 bytes");
  REFUSES(refused(0, 5), kInvalidArgument, "elements of 4 bytes");
}

BOOST_AUTO_TEST_CASE(not_in_the_exporting_process) {
  const Owner owner;
  Buffer buffer = Allocated(owner);
  const ExportedMemory exported = ExportedMemory::Of(buffer.view()).value();
  const Undisturbed undisturbed;
  REFUSES(Bytes::Import(owner.ref(), exported).status(), kFailedPrecondition, "INVALID_CONTEXT",
          "this process exported it");
}

// Nothing says what a GPU's driver does with such bytes.
BOOST_AUTO_TEST_CASE(bytes_that_are_no_handle, *OnlySim()) {
  const Owner owner;
  const Undisturbed undisturbed;
  ExportedMemory wrong;
  wrong.bytes = kAll;
  for (const int byte : {0, 0xff}) {
    std::memset(&wrong.handle, byte, sizeof(wrong.handle));
    REFUSES(Bytes::Import(owner.ref(), wrong).status(), kInvalidArgument, "import 2097152 bytes",
            "no handle of memory");
  }
}

BOOST_AUTO_TEST_CASE(in_no_context_or_ended) {
  Peer peer;
  ContextRef dead;
  Bytes buffer;
  Bytes destroyed_silently;
  {
    const Owner owner;
    dead = owner.ref();
    buffer = Imported(owner, PartOf(peer));
    destroyed_silently = Imported(owner, PartOf(peer));
  }
  OwnContext::DestroyIdle();
  Sim::ResetCalls();
  REFUSES(buffer.Release(), kFailedPrecondition, "CONTEXT_IS_DESTROYED", "gone with its context");
  BOOST_TEST(buffer.empty());
  SUCCEEDS(buffer.Release());
  destroyed_silently = Bytes();
  BOOST_TEST(Sim::Calls("cuIpcCloseMemHandle") == 0U);
  REFUSES(Bytes::Import(dead, PartOf(peer)).status(), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
  REFUSES(Bytes::Import(ContextRef(), PartOf(peer)).status(), kFailedPrecondition,
          "import 2097152 bytes");
  BOOST_TEST(peer.Ask(PeerDo::kReadFirst) == PeerMail::kValue);
}

BOOST_AUTO_TEST_CASE(gone_with_a_reset,
                     *NeedsDriver(12000, "cuCtxGetId, which tells incarnations apart")) {
  Peer peer;
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  Bytes buffer = Bytes::Import(ContextRef::Borrow(primary), PartOf(peer)).value();
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  Bytes next = Bytes::Import(ContextRef::Borrow(primary), PartOf(peer)).value();
  REFUSES(buffer.Release(), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
  BOOST_TEST(Holds(next, PeerMail::kValue));
  SUCCEEDS(next.Release());
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

// Undefined on a GPU: see ExportedMemory::Of().
BOOST_AUTO_TEST_CASE(of_an_exporter_that_ended, *OnlySim()) {
  Peer peer;
  const Owner owner;
  const Undisturbed undisturbed;
  Bytes buffer = Imported(owner, PartOf(peer));
  peer.Ask(PeerDo::kGiveUp);
  SUCCEEDS(buffer.Release());
  const auto refused = [&] { return Bytes::Import(owner.ref(), PartOf(peer, 0, 4)).status(); };
  REFUSES(refused(), kInternal, "MAP_FAILED", "the exporter has freed it");
  peer.Quit();
  REFUSES(refused(), kInternal, "MAP_FAILED", "has ended");
}

BOOST_AUTO_TEST_CASE(invalidates_no_capture) {
  Peer peer;
  const Owner owner;
  const Owner captures;
  Buffer own = Allocated(owner);
  for (const Owner* capturing : {&owner, &captures}) {
    for (const CUstreamCaptureMode mode : kCaptureModes) {
      for (const bool other_thread : {false, true}) {
        const Capture capture(capturing->stream(), mode);
        const auto work = [&] {
          Bytes buffer = Imported(owner, PartOf(peer));
          SUCCEEDS(ExportedMemory::Of(own.view()).status());
          SUCCEEDS(buffer.Release());
        };
        if (other_thread) {
          std::thread(work).join();
        } else {
          work();
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(device_buffer_does_not_adopt_it,
                     *NeedsDriver(12000, "CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED")) {
  Peer peer;
  const Owner owner;
  const Undisturbed undisturbed;
  Bytes buffer = Imported(owner, PartOf(peer));
  REFUSES(DeviceBuffer<unsigned char>::Adopt(buffer.get(), kAll).status(), kInvalidArgument,
          "device memory of device 0", "opened from another process",
          Advised("is closed by cuIpcCloseMemHandle (see ImportedBuffer), or it is a module's "
                  "variable; borrow a view"));
  REFUSES(DeviceBuffer<unsigned char>::AdoptAsync(buffer.get(), kAll, Ref(owner)).status(),
          kInvalidArgument, "opened from another process");
  BOOST_TEST((DeviceView<unsigned char>::Borrow(buffer.get(), kAll).ok()));
}

// Where the driver does not say so, freeing it is refused later.
BOOST_AUTO_TEST_CASE(adopted_all_the_same, *OnlySim()) {
  Peer peer;
  const Owner owner;
  Bytes buffer = Imported(owner, PartOf(peer));
  for (const char* entry : {"cuPointerGetAttribute", "cuDeviceGetAttribute"}) {
    Sim::FailCall(entry, 1, CUDA_ERROR_INVALID_VALUE);
    auto adopted = DeviceBuffer<unsigned char>::Adopt(buffer.get(), kAll).value();
    Sim::ClearFaults();
    REFUSES(adopted.Release(), kInvalidArgument, "cuIpcCloseMemHandle",
            Advised("the buffer still owns it: Leak() it"));
    BOOST_TEST(adopted.Leak().size() == kAll);
  }
  SUCCEEDS(buffer.Release());
}

BOOST_AUTO_TEST_CASE(every_call_fails_once, *OnlySim()) {
  Peer peer;
  const Owner owner;
  const Owner other;
  Buffer own = Allocated(owner);
  const std::vector<std::string> entries = {"cuCtxGetId", "cuCtxPushCurrent", "cuIpcOpenMemHandle",
                                            "cuPointerGetAttributes"};
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{other.get()}}) {
    SetStack(stack);
    FailEachCall(entries, [&] { return Bytes::Import(owner.ref(), PartOf(peer)); });
    FailEachCall({"cuCtxPushCurrent", "cuIpcGetMemHandle", "cuPointerGetAttributes"},
                 [&] { return ExportedMemory::Of(own.view()); });
  }
  SetStack({});
  Bytes buffer = Imported(owner, PartOf(peer));
  Sim::FailCall("cuIpcCloseMemHandle", 1, CUDA_ERROR_UNKNOWN);
  REFUSES(buffer.Release(), kUnknown, "close the import of 2097152 bytes at 0x",
          "the buffer still owns it");
  BOOST_TEST(!buffer.empty());
  SUCCEEDS(buffer.Release());
}

BOOST_AUTO_TEST_CASE(owed_after_a_host_function, *OnlySim()) {
  Peer peer;
  const Owner owner;
  const Undisturbed undisturbed;
  Bytes buffer = Imported(owner, PartOf(peer));
  const CUdeviceptr pointer = buffer.get();
  const auto drop = [](void* data) { *static_cast<Bytes*>(data) = Bytes(); };
  OK(RAW(cuLaunchHostFunc)(owner.stream(), drop, &buffer));
  OK(RAW(cuStreamSynchronize)(owner.stream()));
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == cuguest::Incident::Kind::kOwed));
  BOOST_TEST(incidents[0].result == CUDA_ERROR_NOT_PERMITTED);
  BOOST_TEST(std::string(incidents[0].file) == "an ImportedBuffer");
  BOOST_TEST(IsThere(pointer));
  Buffer next = Allocated(owner);
  SUCCEEDS(next.Release());
  next = Buffer();
  BOOST_TEST(!IsThere(pointer));
}

BOOST_AUTO_TEST_CASE(it_costs_what_it_says, *OnlySim()) {
  Peer peer;
  const Owner owner;
  const ContextRef context = owner.ref();
  Buffer own = Allocated(owner);
  for (const unsigned switched : {0U, 2U}) {
    SetStack(switched == 0 ? Stack{owner.get()} : Stack{});
    BeginCount();
    Bytes buffer = Bytes::Import(context, PartOf(peer)).value();
    BOOST_TEST(Sim::TotalCalls() == 8 + switched);
    BeginCount();
    SUCCEEDS(buffer.Release());
    BOOST_TEST(Sim::TotalCalls() == 6 + switched);
    BeginCount();
    SUCCEEDS(ExportedMemory::Of(own.view()).status());
    BOOST_TEST(Sim::TotalCalls() == 2 + 6 + switched);
  }
  SetStack({});
}

CHILD(imports_a_part) {
  const ContextRef context = ContextRef::Borrow(MakeContext());
  auto buffer = ImportedBuffer<int>::Import(context, ReadVariable<ExportedMemory>(kExported));
  CHECK(buffer.ok());
  CHECK(buffer->size() == 3);
  std::vector<int> ints(3);
  CHECK(Download(std::as_const(*buffer).view(), ints).ok());
  CHECK((ints == std::vector<int>{5, 5, 5}));
  CHECK(Fill(buffer->view(), 6).ok());
  // What was imported is not the importer's to export.
  CHECK(!ExportedMemory::Of(buffer->view()).ok());
  CHECK(buffer->Release().ok());
  return 0;
}

BOOST_AUTO_TEST_CASE(another_process_opens_a_part) {
  const Owner owner;
  Buffer buffer = Allocated(owner);
  SUCCEEDS(Fill(buffer.view(), 5));
  for (const Stack& stack : {Stack{}, Stack{owner.get()}}) {
    SetStack(stack);
    const auto exported = ExportedMemory::Of(buffer.view().Subview(2, 3).value());
    SetStack({});
    BOOST_TEST_REQUIRE(exported.ok(), exported.status().ToString());
    BOOST_TEST(exported->offset == 8U);
    BOOST_TEST(exported->bytes == 12U);
    SUCCEEDS(Fill(buffer.view(), 5));
    const Ended ended = RunSelf({"--child=imports_a_part"}, {VariableOf(kExported, *exported)});
    BOOST_TEST(ended.code == 0, ended.output);
    Ints ints(kInts);
    SUCCEEDS(Download(buffer.view(), ints));
    Ints expected(kInts, 5);
    expected[2] = expected[3] = expected[4] = 6;
    BOOST_TEST((ints == expected));
  }
}

// The parent's mapping stays, and the child's buffer makes no call.
CHILD(forks_with_an_import) {
  const ContextRef context = ContextRef::Borrow(MakeContext());
  std::optional<Bytes> buffer =
      Bytes::Import(context, ReadVariable<ExportedMemory>(kExported)).value();
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status refused = buffer->Release();
    CHECK(refused.code() == absl::StatusCode::kFailedPrecondition);
    buffer.reset();
    CHECK(!Bytes::Import(context, ReadVariable<ExportedMemory>(kExported)).ok());
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  std::vector<unsigned char> bytes(buffer->size());
  CHECK(Download(std::as_const(*buffer).view(), bytes).ok());
  CHECK(buffer->Release().ok());
  return 0;
}

BOOST_AUTO_TEST_CASE(a_forked_child_leaves_the_parents) {
  const Owner owner;
  Buffer buffer = Allocated(owner);
  const ExportedMemory exported = ExportedMemory::Of(buffer.view()).value();
  const Ended ended = RunSelf({"--child=forks_with_an_import"}, {VariableOf(kExported, exported)});
  BOOST_TEST(ended.code == 0, ended.output);
}

// chelsea0x3b/cudarc#521: of pool memory the driver says no more than INVALID_VALUE.
BOOST_AUTO_TEST_CASE(exports_only_an_allocation) {
  const Owner owner;
  const Memories memories(owner);
  const Undisturbed undisturbed;
  const auto exported = [](CUdeviceptr pointer) {
    return ExportedMemory::Of(DeviceView<int>::Borrow(pointer, 4).value()).status();
  };
  SUCCEEDS(exported(memories.device));
  REFUSES(exported(memories.managed), kInvalidArgument, "export 16 bytes", "managed memory");
  REFUSES(exported(memories.pinned), kInvalidArgument, "pinned host memory");
  REFUSES(exported(memories.registered), kInvalidArgument, "only memory of cuMemAlloc");
  REFUSES(exported(memories.pool), kInvalidArgument, "cuMemPoolExportPointer");
  REFUSES(exported(memories.virtual_memory), kInvalidArgument, "cuMemExportToShareableHandle");
  REFUSES(ExportedMemory::Of(DeviceView<int>()).status(), kInvalidArgument, "the view is empty");
}

CHILD(adopts_from_an_imported_pool) {
  const CUcontext context = MakeContext();
  const ContextRef ref = ContextRef::Borrow(context);
  CUmemoryPool pool = nullptr;
  const int descriptor = std::atoi(std::getenv(kPoolDescriptor));
  CHECK(RAW(cuMemPoolImportFromShareableHandle)(&pool, ToHandle(descriptor), kDescriptor, 0) ==
        CUDA_SUCCESS);
  auto data = ReadVariable<CUmemPoolPtrExportData>(kPoolPointer);
  const auto stream = cuguest::Stream::Create(ref);
  CHECK(stream.ok());
  for (const bool in_order : {false, true}) {
    CUdeviceptr pointer = 0;
    CHECK(RAW(cuMemPoolImportPointer)(&pointer, pool, &data) == CUDA_SUCCESS);
    auto buffer = in_order ? Buffer::AdoptAsync(pointer, kInts, stream->ref())
                           : Buffer::Adopt(pointer, kInts);
    CHECK(buffer.ok());
    CHECK(KindOf(pointer) == MemoryDescription::Kind::kPool);
    CHECK(FillAsync(buffer->view(), in_order ? 7 : 6, stream->ref()).ok());
    CHECK(stream->ref().Synchronize().ok());
    CHECK(buffer->Release().ok());
    CHECK(stream->ref().Synchronize().ok());
  }
  CHECK(RAW(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
  return 0;
}

BOOST_AUTO_TEST_CASE(pool_memory_is_a_device_buffer) {
  const Owner owner;
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = kDescriptor;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  CUdeviceptr pointer = 0;
  CUmemPoolPtrExportData data = {};
  int descriptor = -1;
  OK(RAW(cuMemPoolCreate)(&pool, &properties));
  OK(RAW(cuMemAllocFromPoolAsync)(&pointer, kBytes, pool, owner.stream()));
  OK(RAW(cuStreamSynchronize)(owner.stream()));
  OK(RAW(cuMemPoolExportToShareableHandle)(&descriptor, pool, kDescriptor, 0));
  OK(RAW(cuMemPoolExportPointer)(&data, pointer));
  const int inherited = dup(descriptor);
  const Ended ended = RunSelf(
      {"--child=adopts_from_an_imported_pool"},
      {kPoolDescriptor + ("=" + std::to_string(inherited)), VariableOf(kPoolPointer, data)});
  BOOST_TEST(ended.code == 0, ended.output);
  close(inherited);
  close(descriptor);
  Buffer buffer = Made(Buffer::Adopt(pointer, kInts));
  owner.Enter();
  BOOST_TEST(buffers::Holds(buffer, 7));
  SetStack({});
  SUCCEEDS(buffer.Release());
  OK(RAW(cuMemPoolDestroy)(pool));
}

BOOST_AUTO_TEST_CASE(virtual_memory_is_a_view) {
  const Owner owner;
  const CUmemGenericAllocationHandle handle = CreateShared();
  int descriptor = -1;
  OK(RAW(cuMemExportToShareableHandle)(&descriptor, handle, kDescriptor, 0));
  CUmemGenericAllocationHandle imported = 0;
  OK(RAW(cuMemImportFromShareableHandle)(&imported, ToHandle(descriptor), kDescriptor));
  close(descriptor);
  const Virtual range(2);
  MapAt(range.At(0), handle);
  MapAt(range.At(1), imported);
  owner.Enter();
  const auto view = DeviceView<int>::Borrow(range.At(1), kInts);
  BOOST_TEST_REQUIRE(view.ok(), view.status().ToString());
  SUCCEEDS(Fill(*view, 5));
  const auto ints = Download(DeviceView<int>::Borrow(range.At(0), kInts).value());
  BOOST_TEST_REQUIRE(ints.ok(), ints.status().ToString());
  BOOST_TEST((*ints == Ints(kInts, 5)));
  SetStack({});
  REFUSES(ExportedMemory::Of(*view).status(), kInvalidArgument, "cuMemExportToShareableHandle");
  REFUSES(Buffer::Adopt(range.At(1), kInts).status(), kInvalidArgument, "borrow a view");
}

BOOST_AUTO_TEST_CASE(gone_memory_is_not_exported) {
  DeviceView<int> view;
  {
    const Owner owner;
    view = DeviceView<int>::Borrow(owner.Allocate(), 4).value();
  }
  OwnContext::DestroyIdle();
  REFUSES(ExportedMemory::Of(view).status(), kFailedPrecondition, "CONTEXT_IS_DESTROYED",
          "gone with its context");
}

BOOST_AUTO_TEST_SUITE_END()
