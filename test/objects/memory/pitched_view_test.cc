// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/pitched_view.h"

#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuguest/acquire.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/memory.h"
#include "cuguest/primary_context.h"
#include "test/objects/memory/memories.h"

BOOST_AUTO_TEST_SUITE(pitched_view)

namespace {

using boost::test_tools::per_element;
using cudasim::Sim;
using cuguest::DeviceBuffer;
using cuguest::HostSpan;
using cuguest::PitchedView;
using cuguest::StreamRef;
using namespace cuguest_test;
using View = PitchedView<short>;
using ReadView = PitchedView<const short>;
using Shorts = std::vector<short>;

constexpr size_t kWidth = 10;
constexpr size_t kHeight = 6;
constexpr size_t kPitch = 64;  // bytes: 32 elements
constexpr size_t kMost = std::numeric_limits<size_t>::max();

static_assert(std::is_convertible_v<View, ReadView> && !std::is_convertible_v<ReadView, View>);

// Whether it may be the host's end of an upload that is done after the call.
template <typename Host, typename = void>
struct UploadsLater : std::false_type {};
template <typename Host>
struct UploadsLater<Host,
                    std::void_t<decltype(UploadAsync(std::declval<View>(), std::declval<Host>(),
                                                     std::declval<StreamRef>(), size_t{0}))>>
    : std::true_type {};
static_assert(UploadsLater<Shorts&>::value && UploadsLater<HostSpan<const short>>::value);
static_assert(!UploadsLater<Shorts>::value, "it is gone by then");

// Memory of an owner, every element -1, and a picture in it.
struct Frame {
  explicit Frame(const Owner& owner)
      : buffer(DeviceBuffer<short>::Allocate(owner.ref(), kBytes / sizeof(short)).value()) {
    SUCCEEDS(Fill(buffer.view(), short{-1}));
  }
  View view() const { return View::Borrow(buffer.view().data(), kWidth, kHeight, kPitch).value(); }
  Shorts Elements() const {
    Shorts all(buffer.size());
    SUCCEEDS(Download(buffer.view(), all));
    return all;
  }
  mutable DeviceBuffer<short> buffer;  // its view is of const in a const one
};

short Pixel(size_t x, size_t y) { return static_cast<short>(100 * y + x); }

// Rows of a picture, with `value` between them; of the last row only its elements.
Shorts Picture(size_t pitch, short value = -1) {
  const size_t row = pitch / sizeof(short);
  Shorts picture((kHeight - 1) * row + kWidth, value);
  for (size_t y = 0; y < kHeight; ++y) {
    for (size_t x = 0; x < kWidth; ++x) picture[y * row + x] = Pixel(x, y);
  }
  return picture;
}
Shorts Packed() { return Picture(kWidth * sizeof(short)); }

// The picture, and nothing around it has changed.
void CheckHolds(const Frame& frame) {
  Shorts expected(frame.buffer.size(), -1);
  const Shorts picture = Picture(kPitch);
  std::copy(picture.begin(), picture.end(), expected.begin());
  BOOST_TEST(frame.Elements() == expected, per_element());
}

StreamRef Ref(const Owner& owner) { return StreamRef::Borrow(owner.stream(), owner.ref()); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_frame_of_another_context_is_one_view) {
  const Owner owner;
  const Owner other;
  const Frame frame(owner);
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    const auto view = ReadView::Borrow(frame.buffer.get() + kPitch, kWidth, kHeight, kPitch);
    BOOST_TEST_REQUIRE(view.ok(), view.status().ToString());
    BOOST_TEST(view->get() == frame.buffer.get() + kPitch);
    BOOST_TEST((view->data() == frame.buffer.data() + kPitch / sizeof(short)));
    BOOST_TEST(view->width() == kWidth);
    BOOST_TEST(view->height() == kHeight);
    BOOST_TEST(view->pitch() == kPitch);
    BOOST_TEST((view->context() == owner.ref()));
    BOOST_TEST((view->device() == frame.buffer.device()));
    BOOST_TEST(!view->empty());
    BOOST_TEST(AcquireFromBuffer(*view).ok());
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(copies_to_and_fro_whatever_is_current) {
  const Owner owner;
  const Owner other;
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{owner.get(), other.get()}}) {
    const Frame frame(owner);
    const Frame theirs(other);
    SetStack(stack);
    const Undisturbed undisturbed;
    SUCCEEDS(Upload(frame.view(), Packed()));
    CheckHolds(frame);
    SUCCEEDS(Copy(theirs.view(), frame.view()));
    CheckHolds(theirs);
    Shorts back(kWidth * kHeight);
    SUCCEEDS(Download(theirs.view(), back));
    BOOST_TEST(back == Packed(), per_element());
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(the_host_has_a_pitch_of_its_own) {
  const Owner owner;
  const Frame frame(owner);
  constexpr size_t kHostPitch = 26;
  SUCCEEDS(Upload(frame.view(), Picture(kHostPitch), kHostPitch));
  CheckHolds(frame);
  Shorts back = Picture(kHostPitch, 7);
  const Shorts before = back;
  for (short& value : back) value = value == 7 ? 7 : 0;
  SUCCEEDS(Download(frame.view(), back, kHostPitch));
  BOOST_TEST(back == before, per_element());  // and nothing between the rows
}

BOOST_AUTO_TEST_CASE(in_a_stream) {
  const Owner owner;
  const Frame frame(owner);
  const Frame copy(owner);
  const Shorts packed = Packed();
  Shorts back(kWidth * kHeight);
  const Undisturbed undisturbed;
  SUCCEEDS(UploadAsync(frame.view(), packed, Ref(owner)));
  SUCCEEDS(CopyAsync(copy.view(), frame.view(), Ref(owner)));
  SUCCEEDS(DownloadAsync(copy.view(), back, Ref(owner)));
  SUCCEEDS(Ref(owner).Synchronize());
  BOOST_TEST(back == packed, per_element());
  CheckHolds(copy);
  REFUSES(CopyAsync(copy.view(), frame.view(), StreamRef()), kInvalidArgument,
          "6 rows of 10 elements, pitch 64", "the StreamRef is empty");
}

BOOST_AUTO_TEST_CASE(packed_rows_and_parts) {
  const Owner owner;
  auto buffer = DeviceBuffer<short>::Allocate(owner.ref(), kWidth * kHeight).value();
  SUCCEEDS(Upload(buffer.view(), Packed()));
  const View all = View::Of(buffer.view(), kWidth, kHeight).value();
  BOOST_TEST(all.pitch() == kWidth * sizeof(short));
  const View part = all.Subview(4, 2, 3, 2).value();
  Shorts back(6);
  SUCCEEDS(Download(part, back));
  BOOST_TEST(back == (Shorts{204, 205, 206, 304, 305, 306}), per_element());
  const Frame frame(owner);
  SUCCEEDS(Copy(frame.view(), all));
  CheckHolds(frame);
  for (const auto& [x, y, width, height] : {std::array<size_t, 4>{8, 0, 3, 1},
                                            {0, 5, 1, 2},
                                            {kMost, 0, 1, 1},
                                            {1, 0, kMost, 1},
                                            {0, 1, 1, kMost}}) {
    REFUSES(all.Subview(x, y, width, height).status(), kOutOfRange,
            "of a view of 6 rows of 10 elements");
  }
  BOOST_TEST(all.Subview(10, 6, 0, 0).value().empty());
}

BOOST_AUTO_TEST_CASE(layouts_that_are_none) {
  const Owner owner;
  const Frame frame(owner);
  const CUdeviceptr at = frame.buffer.get();
  const auto borrow = [&](size_t width, size_t height, size_t pitch) {
    return View::Borrow(at, width, height, pitch).status();
  };
  REFUSES(borrow(kWidth, kHeight, 19), kInvalidArgument, "6 rows of 10 elements", "20 bytes",
          "overlaps the next at a pitch of 19");
  REFUSES(borrow(kWidth, kHeight, 65), kInvalidArgument, "pitch of 65 bytes is not aligned to 2");
  REFUSES(borrow(kMost, 1, 0), kInvalidArgument, "more than there are addresses");
  REFUSES(borrow(1, kMost, 64), kInvalidArgument, "more than there are addresses");
  REFUSES(borrow(kWidth, 2, kMost - 1), kInvalidArgument, "more than there are addresses");
  // 63 whole rows and the elements of another.
  BOOST_TEST(borrow(32, 64, kPitch).ok());
  BOOST_TEST(borrow(32, 1, kPitch).ok());
  REFUSES(borrow(32, 65, kPitch), kInvalidArgument, "borrow 4160 bytes", "only 4096 are there");
  BOOST_TEST(View::Borrow(at + 63 * kPitch + 2, 31, 1, 8 * kPitch).ok());
  REFUSES(View::Borrow(at + 63 * kPitch + 2, 32, 1, kPitch).status(), kInvalidArgument,
          "only 62 are there");
  REFUSES(View::Borrow(at + 1, 1, 1, kPitch).status(), kInvalidArgument, "not aligned");
  REFUSES(View::Of(frame.buffer.view(), 32, 65, kPitch).status(), kInvalidArgument,
          "they need 4160 bytes of a view of 4096");
  short host = 0;
  REFUSES(View::Borrow(&host, 1, 1, 0).status(), kInvalidArgument, "plain host memory");
}

BOOST_AUTO_TEST_CASE(nothing_at_all) {
  for (const auto& [width, height] : {std::pair<size_t, size_t>{0, 5}, {5, 0}, {0, 0}}) {
    const auto view = View::Borrow(CUdeviceptr{0}, width, height, 64);
    BOOST_TEST_REQUIRE(view.ok(), view.status().ToString());
    BOOST_TEST(view->empty());
    BOOST_TEST(view->get() == 0U);
    SUCCEEDS(Upload(*view, HostSpan<const short>()));
    SUCCEEDS(Download(*view, HostSpan<short>()));
    SUCCEEDS(Copy(*view, *view));
    REFUSES(Upload(*view, Shorts{1}), kInvalidArgument, "packed rows have 0");
  }
  BOOST_TEST(View().empty());
}

BOOST_AUTO_TEST_CASE(ends_that_do_not_fit) {
  const Owner owner;
  const Frame frame(owner);
  const Undisturbed undisturbed;
  const View part = frame.view().Subview(0, 0, kWidth, 5).value();
  REFUSES(Copy(frame.view(), part), kInvalidArgument, "5 rows of 10 elements",
          "6 rows of 10 elements", "different sizes");
  REFUSES(Upload(frame.view(), Shorts(59)), kInvalidArgument, "118 bytes", "packed rows have 120");
  REFUSES(Upload(frame.view(), Shorts(61)), kInvalidArgument, "packed rows have 120");
  REFUSES(Upload(frame.view(), Shorts(74), 26), kInvalidArgument, "needs at least 150");
  REFUSES(Upload(frame.view(), Shorts(200), 18), kInvalidArgument, "overlaps the next");
  REFUSES(Upload(frame.view(), Shorts(200), kMost), kInvalidArgument, "than there are addresses");
  REFUSES(Upload(frame.view(), HostSpan<const short>(nullptr, 60)), kInvalidArgument, "is null");
  SUCCEEDS(Upload(frame.view(), Shorts(100), 26));  // more than it needs
}

BOOST_AUTO_TEST_CASE(memory_that_ended) {
  const Owner mine;
  const Frame own(mine);
  View dead;
  {
    const Owner owner;
    Frame frame(owner);
    dead = frame.view();
    SUCCEEDS(frame.buffer.Release());
    REFUSES(Copy(own.view(), dead), kInvalidArgument, "copy 6 rows of 10 elements");
  }
  OwnContext::DestroyIdle();
  REFUSES(Copy(own.view(), dead), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
  REFUSES(Upload(dead, Packed()), kFailedPrecondition, "CONTEXT_IS_DESTROYED");
}

BOOST_AUTO_TEST_CASE(memory_of_every_kind) {
  const Owner owner;
  Memories memories(owner);
  const Frame frame(owner);
  SUCCEEDS(Upload(frame.view(), Packed()));
  for (const CUdeviceptr memory : memories.All()) {
    const auto view = View::Borrow(memory, kWidth, kHeight, kPitch);
    BOOST_TEST_REQUIRE(view.ok(), view.status().ToString());
    Shorts back(kWidth * kHeight);
    SUCCEEDS(CopyAsync(*view, frame.view(), Ref(owner)));
    SUCCEEDS(DownloadAsync(*view, back, Ref(owner)));
    SUCCEEDS(Ref(owner).Synchronize());
    BOOST_TEST(back == Packed(), per_element());
  }
}

BOOST_AUTO_TEST_CASE(between_two_devices, *NeedsDevices(2)) {
  const Owner theirs(1);
  const Owner mine(0);
  const Frame frame(theirs);
  const Frame own(mine);
  const Undisturbed undisturbed;
  SUCCEEDS(Upload(frame.view(), Packed()));
  SUCCEEDS(Copy(own.view(), frame.view()));
  CheckHolds(own);
}

// However many rows there are: as many as a copy of one.
BOOST_AUTO_TEST_CASE(cost, *OnlySim()) {
  const Owner owner;
  const Owner other;
  const Frame frame(owner);
  const Frame theirs(other);
  const View picture = frame.view();
  const View their_picture = theirs.view();
  const Shorts packed = Packed();
  const auto calls = [](const auto& copy) {
    Sim::ResetCalls();
    SUCCEEDS(copy());
    return Sim::TotalCalls();
  };
  BOOST_TEST(calls([&] { return Copy(picture, their_picture); }) ==
             calls([&] { return Copy(frame.buffer.view(), theirs.buffer.view()); }));
  BOOST_TEST(calls([&] { return Upload(picture, packed); }) == 10U);
  SetStack({owner.get()});
  BOOST_TEST(calls([&] { return Upload(picture, packed); }) == 8U);
  BOOST_TEST(calls([&] { return UploadAsync(picture, packed, Ref(owner)); }) == 4U);
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
