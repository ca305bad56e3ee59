// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of device 0, of each kind, and what copies and fills make of it beside memory of device 1:
// the table of subprojects/cudasim/test/reach_facts_test.cc, once more for what chooses its
// context.

#include <optional>

#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/peer_access.h"
#include "cuguest/objects/pitched_view.h"
#include "test/objects/memory/memories.h"
#include "test/support/advised.h"

BOOST_AUTO_TEST_SUITE(reach)

namespace {

using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::DeviceView;
using cuguest::HostSpan;
using cuguest::PeerAccess;
using cuguest::PitchedView;
using cuguest::PrimaryContext;
using cuguest::StreamRef;
using namespace cuguest_test;
using View = DeviceView<unsigned>;
using Values = std::vector<unsigned>;

constexpr size_t kCount = kBytes / sizeof(unsigned);

enum Kind { kAlloc, kPeer, kPool, kPoolPeer, kPoolAccess, kManaged, kPinned, kMapped, kBoth };
constexpr Kind kKinds[] = {kAlloc,   kPeer,   kPool,   kPoolPeer, kPoolAccess,
                           kManaged, kPinned, kMapped, kBoth};
constexpr const char* kNames[] = {"cuMemAlloc",
                                  "cuMemAlloc, peer access",
                                  "pool",
                                  "pool, peer access",
                                  "pool, its access",
                                  "managed",
                                  "pinned",
                                  "mapped for 0",
                                  "mapped for both"};

bool IsOfPool(Kind kind) { return kind == kPool || kind == kPoolPeer || kind == kPoolAccess; }
// Whether a device has to be given access and was not, to copy, and to fill.
bool IsShut(Kind kind) { return kind == kPool || kind == kPoolPeer || kind == kMapped; }
bool IsShutToFills(Kind kind) { return IsShut(kind) || kind == kAlloc; }
bool IsShut(Kind kind, bool fills) { return fills ? IsShutToFills(kind) : IsShut(kind); }
// What gives access.
const char* KeyOf(Kind kind) {
  if (IsOfPool(kind)) return "cuMemPoolSetAccess";
  return kind == kMapped ? "cuMemSetAccess" : "PeerAccess::Enable";
}

// kBytes of a kind, made in `owner` of device 0.
class Memory {
 public:
  Memory(Kind kind, const Owner& owner, const Owner& second) : kind_(kind) {
    owner.Enter();
    Make(owner);
    SetStack({});
    if (kind == kPeer || kind == kPoolPeer) EnablePeers(owner, second);
    if (kind == kPoolAccess || kind == kBoth) GiveAccess(owner, second);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (kind_ == kPinned) {
      OK(RAW(cuMemFreeHost)(reinterpret_cast<void*>(at_)));
    } else if (!range_) {
      OK(RAW(cuMemFree)(at_));
    }
    if (pool_ != nullptr) OK(RAW(cuMemPoolDestroy)(pool_));
  }

  // As KeyOf() says.
  void GiveAccess(const Owner& owner, const Owner& second) {
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (pool_ != nullptr) {
      OK(RAW(cuMemPoolSetAccess)(pool_, &access, 1));
    } else if (range_) {
      OK(RAW(cuMemSetAccess)(at_, kUnit, &access, 1));
    } else {
      EnablePeers(owner, second);
    }
  }

  View view() const {
    const absl::StatusOr<View> view = View::Borrow(at_, kCount);
    BOOST_TEST_REQUIRE(view.ok(), view.status().ToString());
    return *view;
  }

 private:
  void EnablePeers(const Owner& owner, const Owner& second) {
    absl::StatusOr<PeerAccess> access = PeerAccess::Enable(second.ref(), owner.ref());
    BOOST_TEST_REQUIRE(access.ok(), access.status().ToString());
    peer_.emplace(*std::move(access));
  }
  void Make(const Owner& owner) {
    void* host = nullptr;
    switch (kind_) {
      case kManaged:
        OK(RAW(cuMemAllocManaged)(&at_, kBytes, CU_MEM_ATTACH_GLOBAL));
        break;
      case kPinned:
        OK(RAW(cuMemHostAlloc)(&host, kBytes, CU_MEMHOSTALLOC_PORTABLE));
        at_ = AddressOf(host);
        break;
      case kMapped:
      case kBoth:
        at_ = range_.emplace(1).Map(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        break;
      case kAlloc:
      case kPeer:
        OK(RAW(cuMemAlloc)(&at_, kBytes));
        break;
      default:
        TakeFromPool(owner);
    }
  }
  void TakeFromPool(const Owner& owner) {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    OK(RAW(cuMemPoolCreate)(&pool_, &properties));
    OK(RAW(cuMemAllocFromPoolAsync)(&at_, kBytes, pool_, owner.stream()));
    OK(RAW(cuStreamSynchronize)(owner.stream()));
  }

  const Kind kind_;
  CUdeviceptr at_ = 0;
  CUmemoryPool pool_ = nullptr;
  std::optional<Virtual> range_;
  std::optional<PeerAccess> peer_;
};

StreamRef Ref(const Owner& owner) { return StreamRef::Borrow(owner.stream(), owner.ref()); }

// Memory of device 0 and of device 1.
struct Pair {
  View memory;
  View own;
};

void Expect(const View& view, unsigned value) {
  const absl::StatusOr<Values> values = Download(view);
  BOOST_TEST_REQUIRE(values.ok(), values.status().ToString());
  BOOST_TEST((*values == Values(kCount, value)));
}

// Copies that choose their context work with every kind, where device 0 has one.
void CheckPlain(const Pair& two) {
  SUCCEEDS(Upload(two.memory, Values(kCount, 1)));
  Expect(two.memory, 1);
  SUCCEEDS(Copy(two.own, two.memory));
  Expect(two.own, 1);
  SUCCEEDS(Fill(two.own, 2U));
  SUCCEEDS(Copy(two.memory, two.own));
  Expect(two.memory, 2);
  SUCCEEDS(Fill(two.memory, 3U));
  Expect(two.memory, 3);
  SUCCEEDS(Zero(two.memory));
  Expect(two.memory, 0);
  SUCCEEDS(Fill(two.own, 4U));
  const auto rows = [](const View& view) {
    return PitchedView<unsigned>::Of(view, kCount / 4, 4).value();
  };
  SUCCEEDS(Copy(rows(two.memory), rows(two.own)));
  Expect(two.memory, 4);
}

// What one call does in a stream.
struct InStream {
  const char* name;
  absl::Status (*call)(const Pair& two, const StreamRef& stream);
  bool fills;
};

Values sent(kCount, 8);
Values received(kCount);

const InStream kInStream[] = {
    {"copy from it",
     [](const Pair& two, const StreamRef& stream) {
       return CopyAsync(two.own, two.memory, stream);
     },
     false},
    {"copy to it",
     [](const Pair& two, const StreamRef& stream) {
       return CopyAsync(two.memory, two.own, stream);
     },
     false},
    {"upload",
     [](const Pair& two, const StreamRef& stream) { return UploadAsync(two.memory, sent, stream); },
     false},
    {"download",
     [](const Pair& two, const StreamRef& stream) {
       return DownloadAsync(two.memory, received, stream);
     },
     false},
    {"fill",
     [](const Pair& two, const StreamRef& stream) { return FillAsync(two.memory, 8U, stream); },
     true},
    {"zero", [](const Pair& two, const StreamRef& stream) { return ZeroAsync(two.memory, stream); },
     true},
};

// Refused, with the reason and what to do.
void CheckRefusal(const absl::Status& status, Kind kind) {
  REFUSES(status, kInvalidArgument, "in a context of device 1", "of device 0",
          Advised("use a context or a stream of device "), Advised(", or give access with "),
          KeyOf(kind));
}

void CheckStream(const InStream& each, const Pair& two, const StreamRef& stream, bool works,
                 Kind kind) {
  SUCCEEDS(Fill(two.memory, 6U));
  SUCCEEDS(Fill(two.own, 7U));
  const absl::Status status = each.call(two, stream);
  SUCCEEDS(stream.Synchronize());
  if (works) {
    SUCCEEDS(status);
  } else {
    CheckRefusal(status, kind);
    Expect(two.memory, 6);
    Expect(two.own, 7);
  }
}

// What is refused is refused at the call, and the capture goes on without it.
void CheckCaptured(const InStream& each, const Pair& two, const Owner& owner, bool works,
                   Kind kind) {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  OK(RAW(cuStreamBeginCapture)(owner.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  const absl::Status status = each.call(two, Ref(owner));
  OK(RAW(cuStreamEndCapture)(owner.stream(), &graph));
  owner.Enter();
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  if (works) {
    SUCCEEDS(status);
    OK(RAW(cuGraphLaunch)(executable, owner.stream()));
    OK(RAW(cuStreamSynchronize)(owner.stream()));
  } else {
    CheckRefusal(status, kind);
  }
  OK(RAW(cuGraphExecDestroy)(executable));
  OK(RAW(cuGraphDestroy)(graph));
  SetStack({});
}

// Calls `check` with each kind of memory, on whatever is current.
template <typename Check>
void WithEachKind(const Check& check) {
  const Owner first(0);
  const Owner second(1);
  auto own = DeviceBuffer<unsigned>::Allocate(second.ref(), kCount).value();
  for (const Kind kind : kKinds) {
    BOOST_TEST_CONTEXT(kNames[kind]) {
      const Memory memory(kind, first, second);
      check(kind, first, second, Pair{memory.view(), own.view()});
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_a_stream, *NeedsPeers()) {
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  WithEachKind([](Kind, const Owner& first, const Owner& second, const Pair& two) {
    for (const Stack& stack : {Stack{}, Stack{first.get()}, Stack{second.get()}}) {
      SetStack(stack);
      const Undisturbed undisturbed;
      CheckPlain(two);
    }
    SetStack({});
  });
}

// Then only the other end has a place to copy in.
BOOST_AUTO_TEST_CASE(without_a_context_on_device_0, *NeedsPeers()) {
  WithEachKind([](Kind kind, const Owner& first, const Owner& second, const Pair& two) {
    SetStack({first.get()});
    SUCCEEDS(Fill(two.memory, 5U));
    SetStack({second.get()});
    SUCCEEDS(Fill(two.own, 6U));
    {
      const Undisturbed undisturbed;
      const absl::Status status = Copy(two.own, two.memory);
      if (IsShut(kind)) {
        CheckRefusal(status, kind);
      } else {
        SUCCEEDS(status);
      }
    }
    Expect(two.own, IsShut(kind) ? 6 : 5);
    SetStack({});
  });
}

BOOST_AUTO_TEST_CASE(in_a_stream_of_either_device, *NeedsPeers()) {
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  WithEachKind([](Kind kind, const Owner& first, const Owner& second, const Pair& two) {
    for (const InStream& each : kInStream) {
      BOOST_TEST_CONTEXT(each.name) {
        const Undisturbed undisturbed;
        const bool shut = IsShut(kind, each.fills);
        CheckStream(each, two, Ref(first), true, kind);
        CheckStream(each, two, Ref(second), !shut, kind);
      }
    }
  });
}

// What the refusals advise, in a stream of device 1: one of device 0 does it, and so does that one
// with access.
BOOST_AUTO_TEST_CASE(advice_is_followed, *NeedsPeers()) {
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  const Owner first(0);
  const Owner second(1);
  auto own = DeviceBuffer<unsigned>::Allocate(second.ref(), kCount).value();
  for (const Kind kind : {kAlloc, kPool, kPoolPeer, kMapped}) {
    for (const InStream& each : kInStream) {
      if (!IsShut(kind, each.fills)) continue;
      BOOST_TEST_CONTEXT(kNames[kind] << ", " << each.name) {
        const Undisturbed undisturbed;
        Memory memory(kind, first, second);
        const Pair two{memory.view(), own.view()};
        CheckStream(each, two, Ref(second), false, kind);
        CheckStream(each, two, Ref(first), true, kind);
        memory.GiveAccess(first, second);
        CheckStream(each, two, Ref(second), true, kind);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(in_a_capture_of_either_device,
                     *NeedsPeers() * NeedsDriver(11040, "cuGraphInstantiateWithFlags")) {
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  WithEachKind([](Kind kind, const Owner& first, const Owner& second, const Pair& two) {
    for (const InStream& each : kInStream) {
      BOOST_TEST_CONTEXT(each.name) {
        const Undisturbed undisturbed;
        const bool shut = IsShut(kind, each.fills);
        CheckCaptured(each, two, first, true, kind);
        CheckCaptured(each, two, second, !shut, kind);
      }
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
