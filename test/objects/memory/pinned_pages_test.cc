// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/pinned_pages.h"

#include <sys/mman.h>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/memory.h"
#include "cuguest/objects/pinned_buffer.h"
#include "test/objects/memory/memories.h"
#include "test/support/failed_calls.h"

BOOST_AUTO_TEST_SUITE(pinned_pages)

namespace {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Describe;
using cuguest::DeviceBuffer;
using cuguest::DeviceView;
using cuguest::HostSpan;
using cuguest::PinnedPages;
using namespace cuguest_test;
using Kind = cuguest::MemoryDescription::Kind;

constexpr size_t kPage = 4096;
constexpr unsigned kPinCalls = 11;  // with its context current
constexpr unsigned kUnpinCalls = 8;

// The user's.
class Pages {
 public:
  static constexpr size_t kSize = 8 * kPage;
  Pages()
      : base(static_cast<char*>(mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0))) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { munmap(base, kSize); }
  bool ArePinned(size_t offset = 0) const {
    return Describe(base + offset).value().kind == Kind::kPinnedHost;
  }
  char* base;
};

PinnedPages Pinned(const Owner& owner, void* pages, size_t bytes) {
  absl::StatusOr<PinnedPages> pinned = PinnedPages::Pin(owner.ref(), pages, bytes);
  BOOST_TEST_REQUIRE(pinned.ok(), pinned.status().ToString());
  return *std::move(pinned);
}

// As the user does it.
void Register(const Owner& owner, void* pages, size_t bytes) {
  owner.Enter();
  OK(RAW(cuMemHostRegister)(pages, bytes, 0));
  SetStack({});
}
void Unregister(const Owner& owner, void* pages) {
  owner.Enter();
  OK(RAW(cuMemHostUnregister)(pages));
  SetStack({});
}

}  // namespace

BOOST_AUTO_TEST_CASE(pinned_for_a_scope_whatever_is_current) {
  const Pages pages;
  const Owner owner;
  const Owner other;
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{owner.get(), other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    {
      const PinnedPages pinned = Pinned(owner, pages.base, Pages::kSize);
      BOOST_TEST(pinned.data() == pages.base);
      BOOST_TEST(pinned.size_bytes() == Pages::kSize);
      BOOST_TEST((pinned.context() == owner.ref()));
      BOOST_TEST(!pinned.was_pinned());
      const auto memory = Describe(pages.base + 5000).value();
      BOOST_TEST((memory.kind == Kind::kPinnedHost && memory.context == owner.ref()));
      BOOST_TEST(memory.offset() == 5000U);
      BOOST_TEST(memory.size == Pages::kSize);
    }
    BOOST_TEST(!pages.ArePinned());
  }
  SetStack({});
}

// The second of the same range, a part of it, and one in another context share the first one's pin.
BOOST_AUTO_TEST_CASE(one_pin_in_any_order_of_ending) {
  const Pages pages;
  const Owner owner;
  const Owner other;
  for (const std::vector<int>& order :
       {std::vector<int>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {0, 2, 1}}) {
    const Undisturbed undisturbed;
    std::optional<PinnedPages> pinned[3];
    pinned[0] = Pinned(owner, pages.base, Pages::kSize);
    pinned[1] = Pinned(owner, pages.base, Pages::kSize);
    pinned[2] = Pinned(other, pages.base + kPage + 100, kPage);
    for (const auto& each : pinned) {
      BOOST_TEST(!each->was_pinned());
      BOOST_TEST((each->context() == owner.ref()));
    }
    for (const int i : order) {
      BOOST_TEST(pages.ArePinned());
      SUCCEEDS(pinned[i]->Release());
      SUCCEEDS(pinned[i]->Release());  // of nothing
    }
    BOOST_TEST(!pages.ArePinned());
  }
}

BOOST_AUTO_TEST_CASE(what_the_user_has_pinned_stays) {
  const Pages pages;
  const Owner owner;
  const Owner users;
  Register(users, pages.base, 4 * kPage);
  {
    const Undisturbed undisturbed;
    const PinnedPages all = Pinned(owner, pages.base, 4 * kPage);
    const PinnedPages part = Pinned(owner, pages.base + kPage, kPage);
    BOOST_TEST((all.was_pinned() && part.was_pinned()));
    BOOST_TEST((all.context() == users.ref()));
    const absl::StatusOr<DeviceView<char>> view =
        DeviceView<char>::Borrow(static_cast<char*>(part.data()), kPage);
    BOOST_TEST(view.ok(), view.status().ToString());
  }
  BOOST_TEST(pages.ArePinned());
  Unregister(users, pages.base);
  // And so do pages that the driver has allocated.
  auto buffer = cuguest::PinnedBuffer<char>::Allocate(users.ref(), kPage).value();
  BOOST_TEST(Pinned(owner, buffer.data(), kPage).was_pinned());
  BOOST_TEST((Describe(buffer.data()).value().kind == Kind::kPinnedHost));
}

BOOST_AUTO_TEST_CASE(what_the_user_has_unpinned_is_left_alone) {
  const Pages pages;
  const Owner owner;
  {
    PinnedPages pinned = Pinned(owner, pages.base, kPage);
    Unregister(owner, pages.base);
    const Undisturbed undisturbed;
    SUCCEEDS(pinned.Release());
  }
  PinnedPages pinned = Pinned(owner, pages.base, kPage);
  Unregister(owner, pages.base);
  Register(owner, pages.base, kPage);  // the same range, and another pin
  SUCCEEDS(pinned.Release());
  BOOST_TEST(pages.ArePinned());
  Unregister(owner, pages.base);
}

BOOST_AUTO_TEST_CASE(unpinned_while_a_view_has_it) {
  const Pages pages;
  const Owner owner;
  auto buffer = DeviceBuffer<char>::Allocate(owner.ref(), kPage).value();
  const PinnedPages pinned = Pinned(owner, pages.base, kPage);
  const auto view = DeviceView<char>::Borrow(pages.base, kPage).value();
  SUCCEEDS(Copy(buffer.view(), view));
  Unregister(owner, pages.base);
  const Undisturbed undisturbed;
  REFUSES(Copy(buffer.view(), view), kInvalidArgument, "copy 4096 bytes");
  SUCCEEDS(Upload(buffer.view(), HostSpan<const char>(pages.base, kPage)));  // plain memory
}

BOOST_AUTO_TEST_CASE(ranges_that_are_pinned_in_part) {
  const Pages pages;
  const Owner owner;
  Register(owner, pages.base + kPage, 2 * kPage);
  const auto pin = [&](size_t offset, size_t bytes) {
    return PinnedPages::Pin(owner.ref(), pages.base + offset, bytes).status();
  };
  {
    const Undisturbed undisturbed;
    REFUSES(pin(kPage, 3 * kPage), kAlreadyExists, "pin 12288 bytes", "8192 are pinned already");
    REFUSES(pin(2 * kPage, 2 * kPage), kAlreadyExists, "4096 are pinned already");
    for (const size_t bytes : {2 * kPage, 8 * kPage}) {
      REFUSES(pin(0, bytes), kAlreadyExists, "pin " + std::to_string(bytes) + " bytes",
              "some, but not the first, are pinned already", "HOST_MEMORY_ALREADY_REGISTERED");
    }
    SUCCEEDS(pin(kPage, 2 * kPage));
    SUCCEEDS(pin(3 * kPage, kPage));  // beside it
  }
  // Two pins side by side are not one.
  Register(owner, pages.base + 3 * kPage, kPage);
  REFUSES(pin(kPage, 3 * kPage), kAlreadyExists, "8192 are pinned already");
  Unregister(owner, pages.base + 3 * kPage);
  Unregister(owner, pages.base + kPage);
}

BOOST_AUTO_TEST_CASE(bad_input) {
  const Pages pages;
  const Owner owner;
  auto device = DeviceBuffer<char>::Allocate(owner.ref(), kPage).value();
  const Undisturbed undisturbed;
  const auto pin = [&](void* memory, size_t bytes) {
    return PinnedPages::Pin(owner.ref(), memory, bytes).status();
  };
  REFUSES(pin(nullptr, 1), kInvalidArgument, "pin 1 bytes", "null");
  REFUSES(pin(pages.base, ~size_t{0}), kInvalidArgument, "more than there are addresses");
  REFUSES(pin(reinterpret_cast<void*>(0x1000), kPage), kInvalidArgument, "pin 4096 bytes");
  REFUSES(pin(device.data(), kPage), kInvalidArgument, "device memory");
  REFUSES(PinnedPages::Pin(owner.ref(), pages.base, kPage, 0x100).status(), kInvalidArgument,
          "flags 256");
  REFUSES(PinnedPages::Pin(ContextRef(), pages.base, kPage).status(), kFailedPrecondition,
          "pin 4096 bytes");
  const absl::StatusOr<PinnedPages> nothing = PinnedPages::Pin(owner.ref(), nullptr, 0);
  BOOST_TEST((nothing.ok() && nothing->data() == nullptr && !nothing->was_pinned()));
  BOOST_TEST(!pages.ArePinned());
}

BOOST_AUTO_TEST_CASE(the_context_ends_first) {
  const Pages pages;
  std::optional<PinnedPages> pinned;
  std::optional<PinnedPages> shared;
  ContextRef dead;
  {
    const Owner owner;
    dead = owner.ref();
    pinned = Pinned(owner, pages.base, kPage);
    shared = Pinned(owner, pages.base, kPage);
  }
  OwnContext::DestroyIdle();
  BOOST_TEST(!pages.ArePinned());
  REFUSES(PinnedPages::Pin(dead, pages.base, kPage).status(), kFailedPrecondition,
          "CONTEXT_IS_DESTROYED");
  const Owner next;
  const Undisturbed undisturbed;
  const PinnedPages again = Pinned(next, pages.base, kPage);  // is not theirs
  SUCCEEDS(pinned->Release());
  shared.reset();
  BOOST_TEST(pages.ArePinned());
}

BOOST_AUTO_TEST_CASE(moved_and_leaked) {
  const Pages pages;
  const Owner owner;
  PinnedPages first = Pinned(owner, pages.base, kPage);
  PinnedPages second = std::move(first);
  BOOST_TEST(first.size_bytes() == 0U);
  BOOST_TEST(second.data() == pages.base);
  first = std::move(second);
  BOOST_TEST(pages.ArePinned());
  first = PinnedPages();
  BOOST_TEST(!pages.ArePinned());
  second = Pinned(owner, pages.base, kPage);
  second.Leak();
  BOOST_TEST(second.data() == nullptr);
  BOOST_TEST(pages.ArePinned());
  Unregister(owner, pages.base);
}

BOOST_AUTO_TEST_CASE(many_threads) {
  const Pages pages;
  const Owner owner;
  const Undisturbed undisturbed;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 50; ++turn) {
        const auto pinned = PinnedPages::Pin(owner.ref(), pages.base + i / 4 * kPage, kPage);
        if (!pinned.ok() || pinned->was_pinned()) std::abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST((!pages.ArePinned() && !pages.ArePinned(kPage)));
}

BOOST_AUTO_TEST_CASE(nothing_fails_and_the_cost, *OnlySim()) {
  const Pages pages;
  const Owner owner;
  const auto calls = [](const auto& work) {
    FailedCalls failed;
    Sim::ResetCalls();
    work();
    const auto made = static_cast<unsigned>(Sim::TotalCalls());
    BOOST_TEST(failed.Take().empty());
    return made;
  };
  for (const unsigned more : {2U, 0U}) {
    if (more == 0) SetStack({owner.get()});
    PinnedPages first;
    PinnedPages second;
    BOOST_TEST(calls([&] { first = Pinned(owner, pages.base, kPage); }) == kPinCalls + more);
    BOOST_TEST(calls([&] { second = Pinned(owner, pages.base, kPage); }) == kPinCalls - 3 + more);
    SUCCEEDS(first.Release());
    BOOST_TEST(calls([&] { SUCCEEDS(second.Release()); }) == kUnpinCalls + more);
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(each_failing_call_is_a_status_and_loses_nothing, *OnlySim()) {
  const Pages pages;
  const Owner owner;
  for (const char* entry : {"cuMemHostRegister", "cuPointerGetAttributes", "cuCtxGetId"}) {
    for (unsigned nth = 1; nth < 4; ++nth) {
      const Undisturbed undisturbed;
      Sim::FailCall(entry, nth, CUDA_ERROR_UNKNOWN);
      const auto pinned = PinnedPages::Pin(owner.ref(), pages.base, kPage);
      Sim::ClearFaults();
      BOOST_TEST((pinned.ok() || cuguest::CodeOf(pinned.status()) == CUDA_ERROR_UNKNOWN), entry);
    }
  }
  PinnedPages pinned = Pinned(owner, pages.base, kPage);
  Sim::FailCall("cuMemHostUnregister", 1, CUDA_ERROR_UNKNOWN);
  REFUSES(pinned.Release(), kUnknown, "unpin 4096 bytes");
  BOOST_TEST(pages.ArePinned());
  SUCCEEDS(pinned.Release());
  BOOST_TEST(!pages.ArePinned());
}

BOOST_AUTO_TEST_SUITE_END()
