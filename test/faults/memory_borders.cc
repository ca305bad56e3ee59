// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The border values of memory, streams and events.

#include <algorithm>
#include <optional>
#include <tuple>

#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/imported_buffer.h"
#include "cuguest/objects/memory.h"
#include "cuguest/objects/pinned_buffer.h"
#include "cuguest/objects/pinned_pages.h"
#include "cuguest/objects/pitched_view.h"
#include "cuguest/objects/scratch_buffer.h"
#include "cuguest/objects/stream_protocol.h"
#include "test/faults/cc_parameters.h"
#include "test/support/peer.h"

namespace cuguest_faults {
namespace {

using namespace cuguest;
using View = DeviceView<int>;
using Buffer = DeviceBuffer<int>;
using Pinned = PinnedBuffer<int>;
using Imported = ImportedBuffer<int>;
using Picture = PitchedView<int>;
constexpr size_t kCount = Things::kCount;

// Elements of int: more than there are bytes is refused, more than there is memory by the driver.
Parameter<size_t> Elements(Expected none) {
  return Count(kCount, sizeof(int), std::move(none), Expected{kExhausted}.ByDriver(), {kInvalid});
}

// Where no context owns the memory, there has to be one that it can be used in.
Parameter<View> AView(const Expected& empty) {
  return {[](Given& given) { return given.things.view; },
          {Is("is empty", View(), empty),
           {"is of a context that was reset", [](Given& given) { return given.things.ended_view; },
            Expected{kPrecondition}.ByDriver()},
           {"is of memory that no context owns",
            [](Given& given) { return given.things.pool_view; },
            {0, kPrecondition}}}};
}

Parameter<HostSpan<int>> Host(const Expected& empty) {
  return {[](Given& given) { return HostSpan<int>(given.things.numbers); },
          {Is("is empty", HostSpan<int>(), empty),
           Is("is null", HostSpan<int>(nullptr, kCount), {kInvalid}),
           Is("is beyond all there is", HostSpan<int>(nullptr, SIZE_MAX), {kInvalid}),
           {"is too short",
            [](Given& given) { return HostSpan<int>(given.things.numbers.data(), kCount - 1); },
            {kInvalid}}}};
}

const cuguest_test::Peer& ThePeer() {
  static const auto& peer = *new cuguest_test::Peer;
  return peer;
}

Stream MadeStream(const Things& things) { return ValueOf(Stream::Create(things.home.ref())); }
Event MadeEvent(const Things& things) { return ValueOf(Event::Create(things.home.ref())); }

std::vector<Row> Views() {
  const auto number = [&](size_t valid, std::vector<std::pair<size_t, int>> others) {
    std::vector<Value<size_t>> borders;
    for (const auto& [value, code] : others) {
      borders.push_back(Is("is " + std::to_string(value), value, Expected{code}));
    }
    return Among(valid, borders);
  };
  return {
      MakeRow("Describe",
              std::function([](CUdeviceptr pointer) { return Describe(pointer).status(); }),
              AsksDriver(), Address({0, kInvalid}, {0})),
      MakeRow("DeviceView DeviceView::Borrow", std::function([](CUdeviceptr pointer, size_t count) {
                return View::Borrow(pointer, count);
              }),
              AsksDriver(), Address({kInvalid}, {kInvalid}),
              Count(kCount, sizeof(int), {0}, {kInvalid}, {kInvalid})),
      MakeRow("DeviceView::Subview", std::function([](View view, size_t offset, size_t count) {
                return view.Subview(offset, count);
              }),
              {},
              Parameter<View>{[](Given& given) { return given.things.view; },
                              {Is("is empty", View(), {kOutOfRange})}},
              number(1, {{0, 0},
                         {kCount - 1, 0},
                         {kCount, kOutOfRange},
                         {SIZE_MAX, kOutOfRange},
                         {SIZE_MAX / 2 + 1, kOutOfRange}}),
              number(1, {{0, 0},
                         {kCount - 1, 0},
                         {kCount, kOutOfRange},
                         {SIZE_MAX, kOutOfRange},
                         {SIZE_MAX / sizeof(int), kOutOfRange}})),
  };
}

std::vector<Row> Buffers() {
  const auto made = [](const Things& things) {
    return ValueOf(Buffer::Allocate(things.home.ref(), kCount));
  };
  const auto in_order = [](const Things& things) {
    return ValueOf(Buffer::AllocateAsync(things.stream.ref(), kCount));
  };
  // What a graph has is there until the capture ends: test/objects/memory/scratch_buffer_test.cc.
  Parameter<StreamRef> uncaptured = AStream();
  uncaptured.borders.erase(
      std::remove_if(uncaptured.borders.begin(), uncaptured.borders.end(),
                     [](const Value<StreamRef>& border) { return border.name == "captures"; }),
      uncaptured.borders.end());
  const auto scratch = [](const Things& things) {
    return ValueOf(ScratchBuffer<int>::Allocate(things.stream.ref(), kCount));
  };
  const auto pinned = [](const Things& things) {
    return ValueOf(Pinned::Allocate(things.home.ref(), kCount));
  };
  const auto flags = Among(0U, {Is("is every flag", UINT_MAX, Expected{kInvalid}.ByDriver()),
                                Is("is the last flag", 1U << 31, Expected{kInvalid}.ByDriver())});
  return {
      MakeRow("DeviceBuffer DeviceBuffer::Allocate",
              std::function([](ContextRef context, size_t count) {
                return Buffer::Allocate(context, count);
              }),
              AsksDriver(), Ref(), Elements({0})),
      MakeRow("DeviceBuffer::AllocateAsync", std::function([](StreamRef stream, size_t count) {
                return Buffer::AllocateAsync(stream, count);
              }),
              AsksDriver(), AStream({kPrecondition}), Elements({0})),
      MakeRow("DeviceBuffer::CopyOf", std::function([](ContextRef context, HostSpan<int> values) {
                return Buffer::CopyOf(context, values);
              }),
              AsksDriver(), Ref(), Host({0}).But("is too short", {0})),
      MakeRow("DeviceBuffer::CopyOfAsync",
              std::function([](StreamRef stream, HostSpan<int> values) {
                return Buffer::CopyOfAsync(stream, HostSpan<const int>(values));
              }),
              AsksDriver(), AStream({kPrecondition}), Host({0}).But("is too short", {0})),
      MakeRow("DeviceBuffer::Adopt", std::function([](CUdeviceptr pointer, size_t count) {
                auto adopted = Buffer::Adopt(pointer, count);
                if (adopted.ok()) static_cast<void>(adopted->Leak());
                return adopted.status();
              }),
              AsksDriver(), Address({kInvalid}, {kInvalid}),
              Count(kCount, sizeof(int), {kInvalid}, {kInvalid}, {kInvalid})),
      MakeRow("DeviceBuffer::AdoptAsync",
              std::function([](CUdeviceptr pointer, size_t count, StreamRef stream) {
                auto adopted = Buffer::AdoptAsync(pointer, count, stream);
                if (adopted.ok()) static_cast<void>(adopted->Leak());
                return adopted.status();
              }),
              AsksDriver(), Address({kInvalid}, {kInvalid}),
              Count(kCount, sizeof(int), {kInvalid}, {kInvalid}, {kInvalid}),
              // Whatever has become of the stream, the memory can be freed.
              AStream().But("is of a context that was reset", {0})),
      MakeRow("DeviceBuffer::Release",
              std::function([](Buffer* buffer) { return buffer->Release(); }), GivesBack(),
              Owner<Buffer>(made, {0})),
      MakeRow("DeviceBuffer::FreeAsync", std::function([](Buffer* buffer, StreamRef stream) {
                return buffer->FreeAsync(stream);
              }),
              GivesBack(), Owner<Buffer>(in_order, {0}), AStream({0, kPrecondition})),
      MakeRow("ScratchBuffer ScratchBuffer::Allocate",
              std::function([](StreamRef stream, size_t count) {
                return ScratchBuffer<int>::Allocate(stream, count);
              }),
              AsksDriver(), uncaptured, Elements({0})),
      MakeRow("ScratchBuffer::Release",
              std::function([](ScratchBuffer<int>* buffer) { return buffer->Release(); }),
              GivesBack(), Owner<ScratchBuffer<int>>(scratch, {0})),
      MakeRow("PinnedBuffer PinnedBuffer::Allocate",
              std::function([](ContextRef context, size_t count, unsigned of) {
                return Pinned::Allocate(context, count, of);
              }),
              AsksDriver(), Ref(), Elements({0}), flags),
      MakeRow("PinnedBuffer::Release",
              std::function([](Pinned* buffer) { return buffer->Release(); }), GivesBack(),
              Owner<Pinned>(pinned, {0})),
  };
}

// Of two processes: the peer is one for all rows, and ends after this process.
std::vector<Row> Exports() {
  const auto part = [](std::uint64_t offset, std::uint64_t bytes) {
    ExportedMemory exported;
    exported.handle = ThePeer().mail().memory;
    exported.offset = offset;
    exported.bytes = bytes;
    return exported;
  };
  const auto imported = [part](const Things& things) {
    return ValueOf(Imported::Import(things.home.ref(), part(0, sizeof(int))));
  };
  const auto imported_event = [](const Things& things) {
    return ValueOf(Event::Import(things.home.ref(), ThePeer().mail().event));
  };
  ExportedMemory no_handle;
  no_handle.bytes = sizeof(int);
  constexpr size_t kAll = cuguest_test::PeerMail::kBytes;
  return {
      MakeRow("ExportedMemory::Of",
              std::function([](View view) { return ExportedMemory::Of(view); }), AsksDriver(),
              AView({kInvalid}).But("is of memory that no context owns", {kInvalid})),
      MakeRow("ImportedBuffer ImportedBuffer::Import",
              std::function([](ContextRef context, ExportedMemory exported) {
                return Imported::Import(context, exported);
              }),
              AsksDriver(), Ref(),
              Among(part(0, kAll),
                    {Is("is empty", part(0, 0), {kInvalid}),
                     Is("is no handle", no_handle, Expected{kInvalid}.ByDriver()),
                     Is("is all but an element", part(sizeof(int), kAll - sizeof(int)), {0}),
                     Is("is one element too many", part(0, kAll + sizeof(int)), {kInvalid}),
                     Is("begins at its end", part(kAll, sizeof(int)), {kInvalid}),
                     Is("begins at the largest", part(UINT64_MAX - 3, sizeof(int)), {kInvalid}),
                     Is("is as many as there are", part(4, UINT64_MAX - 3), {kInvalid})})),
      MakeRow("ImportedBuffer::Release",
              std::function([](Imported* buffer) { return buffer->Release(); }), GivesBack(),
              Owner<Imported>(imported, {0})),
      MakeRow("Event::Adopt", std::function([](CUevent event, ContextRef context) {
                auto adopted = Event::Adopt(event, context, CU_EVENT_DEFAULT);
                if (adopted.ok()) static_cast<void>(adopted->Leak());
                return adopted.status();
              }),
              {{0}, {0, kPrecondition}, {0, kNoPermission}, {0}, {0, kCancelled}},
              Parameter<CUevent>{[](Given& given) { return given.things.event.get(); },
                                 {Is("is null", CUevent{}, {kInvalid})}},
              Ref(kInvalid, 0)),
      MakeRow("Event::Import", std::function([](ContextRef context, CUipcEventHandle handle) {
                return Event::Import(context, handle);
              }),
              AsksDriver(), Ref(),
              Among(ThePeer().mail().event,
                    {Is("is no handle", CUipcEventHandle{}, Expected{kInternal}.ByDriver())})),
      MakeRow("Event::Export", std::function([](Event* event) { return event->Export(); }),
              AsksDriver(),
              Owner<Event>(
                  [](const Things& things) {
                    return ValueOf(Event::Create(things.home.ref(),
                                                 CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
                  },
                  {kInvalid})),
      MakeRow("Event::Release: imported",
              std::function([](Event* event) { return event->Release(); }), GivesBack(),
              Owner<Event>(imported_event, {0})),
  };
}

std::vector<Row> Copies() {
  const auto short_of = [](Parameter<View> views) {
    views.borders.push_back(
        {"is too short",
         [](Given& given) { return ValueOf(given.things.view.Subview(0, kCount - 1)); },
         {kInvalid}});
    return views;
  };
  return {
      MakeRow("Copy", std::function([](View to, View from) { return Copy(to, from); }),
              AsksDriver(), short_of(AView({kInvalid})), short_of(AView({kInvalid}))),
      MakeRow("Upload", std::function([](View to, HostSpan<int> from) { return Upload(to, from); }),
              AsksDriver(), short_of(AView({kInvalid})), Host({kInvalid})),
      MakeRow("Download: into a span",
              std::function([](View from, HostSpan<int> to) { return Download(from, to); }),
              AsksDriver(), short_of(AView({kInvalid})), Host({kInvalid})),
      MakeRow("CopyAsync", std::function([](View to, View from, StreamRef stream) {
                return CopyAsync(to, from, stream);
              }),
              AsksDriver(), short_of(AView({kInvalid})), short_of(AView({kInvalid})), AStream()),
      MakeRow("UploadAsync", std::function([](View to, HostSpan<int> from, StreamRef stream) {
                return UploadAsync(to, from, stream);
              }),
              AsksDriver(), short_of(AView({kInvalid})), Host({kInvalid}), AStream()),
      MakeRow("DownloadAsync", std::function([](View from, HostSpan<int> to, StreamRef stream) {
                return DownloadAsync(from, to, stream);
              }),
              AsksDriver(), short_of(AView({kInvalid})), Host({kInvalid}), AStream()),
      MakeRow("Download", std::function([](View from) { return Download(from); }), AsksDriver(),
              AView({0})),
      MakeRow("Fill", std::function([](View to, int value) { return Fill(to, value); }),
              AsksDriver(), AView({0}), Among(1, {Is("is INT_MIN", INT_MIN, {0})})),
      MakeRow("FillAsync", std::function([](View to, int value, StreamRef stream) {
                return FillAsync(to, value, stream);
              }),
              AsksDriver(), AView({0}), Among(1, {Is("is INT_MIN", INT_MIN, {0})}), AStream()),
      MakeRow("Zero", std::function([](View to) { return Zero(to); }), AsksDriver(), AView({0})),
      MakeRow("ZeroAsync",
              std::function([](View to, StreamRef stream) { return ZeroAsync(to, stream); }),
              AsksDriver(), AView({0}), AStream()),
  };
}

std::vector<Row> UsersPages() {
  static std::vector<char> s_pages(8192);  // the user's
  const auto address = [](CUdeviceptr memory) { return reinterpret_cast<void*>(memory); };
  const Parameter<void*> pages = {
      [](Given&) -> void* { return s_pages.data(); },
      {Is<void*>("is null", nullptr, {kInvalid}),
       Is<void*>("is 1", address(1), Expected{kInvalid}.ByDriver()),
       Is<void*>("is the largest", address(~CUdeviceptr{0}), {kInvalid}),
       {"is pinned already",
        [address](Given& given) { return address(given.things.memories.pinned); },
        {0}},
       {"is device memory",
        [address](Given& given) { return address(given.things.memories.device); },
        {kInvalid}},
       {"is managed memory",
        [address](Given& given) { return address(given.things.memories.managed); },
        {kInvalid}}}};
  const auto bytes =
      Among(size_t{4096}, {Is("is 0", size_t{0}, {0}), Is("is 1", size_t{1}, {0}),
                           Is("is SIZE_MAX / 2", SIZE_MAX / 2, Expected{kInvalid}.ByDriver()),
                           Is("is SIZE_MAX", SIZE_MAX, {kInvalid})});
  const auto flags = Among(0U, {Is("is every flag", UINT_MAX, Expected{kInvalid}.ByDriver()),
                                Is("is the last flag", 1U << 31, Expected{kInvalid}.ByDriver())});
  const auto made = [](const Things& things) {
    return ValueOf(PinnedPages::Pin(things.home.ref(), s_pages.data(), s_pages.size()));
  };
  return {
      MakeRow("PinnedPages PinnedPages::Pin",
              std::function([](ContextRef context, void* pages, size_t bytes, unsigned flags) {
                return PinnedPages::Pin(context, pages, bytes, flags);
              }),
              AsksDriver(), Ref(), pages, bytes, flags),
      MakeRow("PinnedPages::Release",
              std::function([](PinnedPages* pages) { return pages->Release(); }), GivesBack(),
              Owner<PinnedPages>(made, {0})),
  };
}

Parameter<Picture> APicture() {
  const auto of = [](View view) {
    return view.empty() ? Picture() : ValueOf(Picture::Of(view, kCount / 4, 4));
  };
  Parameter<Picture> pictures = {[of](Given& given) { return of(given.things.view); }, {}};
  for (const Value<View>& border : AView({kInvalid}).borders) {
    pictures.borders.push_back({border.name,
                                [of, make = border.make](Given& given) { return of(make(given)); },
                                border.expected});
  }
  pictures.borders.push_back(
      {"has a row less",
       [of](Given& given) { return ValueOf(of(given.things.view).Subview(0, 0, kCount / 4, 3)); },
       {kInvalid}});
  return pictures;
}

std::vector<Row> Pictures() {
  // Between the rows of the host's are no other elements; of a row of 16 bytes.
  const auto pitch = Among(
      size_t{16}, {Is("is 0", size_t{0}, {0}), Is("is less than a row", size_t{15}, {kInvalid}),
                   Is("is more than there is", size_t{17}, {kInvalid}),
                   Is("is SIZE_MAX", SIZE_MAX, {kInvalid})});
  const auto number = [](size_t valid, Expected of_half, Expected too_many) {
    return Among(
        valid, {Is("is 0", size_t{0}, {0}), Is("is SIZE_MAX / 2", SIZE_MAX / 2, std::move(of_half)),
                Is("is SIZE_MAX", SIZE_MAX, std::move(too_many))});
  };
  const auto size = [&](size_t valid) { return number(valid, {kInvalid}, {kInvalid}); };
  const auto part = [&](size_t valid) { return number(valid, {kOutOfRange}, {kOutOfRange}); };
  // With a pitch the host may have more than the picture.
  const auto of_host = APicture().But("has a row less", {0}).But("is empty", {0});
  return {
      MakeRow("PitchedView PitchedView::Borrow",
              std::function([](CUdeviceptr pointer, size_t width, size_t height, size_t pitch) {
                return Picture::Borrow(pointer, width, height, pitch);
              }),
              AsksDriver(), Address({kInvalid}, {kInvalid}), size(4), size(4),
              Among(size_t{16},
                    {Is("is 0", size_t{0}, {0}), Is("is less than a row", size_t{12}, {kInvalid}),
                     Is("is not aligned", size_t{17}, {kInvalid}),
                     Is("is SIZE_MAX", SIZE_MAX - 3, {kInvalid})})),
      MakeRow("PitchedView::Of", std::function([](View view, size_t width, size_t height) {
                return Picture::Of(view, width, height);
              }),
              {},
              Parameter<View>{[](Given& given) { return given.things.view; },
                              {Is("is empty", View(), {kInvalid})}},
              size(4), size(4)),
      MakeRow("PitchedView::Subview",
              std::function([](Picture picture, size_t x, size_t y, size_t width, size_t height) {
                return picture.Subview(x, y, width, height);
              }),
              {}, Parameter<Picture>{APicture().valid, {Is("is empty", Picture(), {kOutOfRange})}},
              part(1), part(1), part(2), part(2)),
      MakeRow("Copy: a picture",
              std::function([](Picture to, Picture from) { return Copy(to, from); }), AsksDriver(),
              APicture(), APicture()),
      MakeRow("Upload: a picture", std::function([](Picture to, HostSpan<int> from, size_t pitch) {
                return Upload(to, from, pitch);
              }),
              AsksDriver(), of_host, Host({kInvalid}), pitch),
      MakeRow("Download: a picture",
              std::function([](Picture from, HostSpan<int> to, size_t pitch) {
                return Download(from, to, pitch);
              }),
              AsksDriver(), of_host, Host({kInvalid}), pitch),
      MakeRow("CopyAsync: a picture", std::function([](Picture to, Picture from, StreamRef stream) {
                return CopyAsync(to, from, stream);
              }),
              AsksDriver(), APicture(), APicture(), AStream()),
      MakeRow("UploadAsync: a picture",
              std::function([](Picture to, HostSpan<int> from, StreamRef stream, size_t pitch) {
                return UploadAsync(to, from, stream, pitch);
              }),
              AsksDriver(), of_host, Host({kInvalid}), AStream(), pitch),
      MakeRow("DownloadAsync: a picture",
              std::function([](Picture from, HostSpan<int> to, StreamRef stream, size_t pitch) {
                return DownloadAsync(from, to, stream, pitch);
              }),
              AsksDriver(), of_host, Host({kInvalid}), AStream(), pitch),
  };
}

std::vector<Row> Streams() {
  const auto depends = [] { return Expected{0, kPrecondition}; };
  const auto flags = [](unsigned valid) {
    return Among(valid, {Is("is every flag", UINT_MAX, Expected{kInvalid}.ByDriver()),
                         Is("is the last flag", 1U << 31, Expected{kInvalid}.ByDriver())});
  };
  const auto empty = [] { return Expected{kInvalid}; };
  const auto number = [](Expected minus_one) {
    return Among(std::int64_t{1}, {Is("is 0", std::int64_t{0}, {kInvalid}),
                                   Is("is -1", std::int64_t{-1}, std::move(minus_one)),
                                   Is("is INT64_MIN", INT64_MIN, {kInvalid})});
  };
  return {
      MakeRow("StreamRef StreamRef::Borrow",
              std::function([](CUstream stream) { return StreamRef::Borrow(stream); }),
              AsksDriver(), StreamHandle(depends())),
      MakeRow("StreamRef::device", std::function([](StreamRef stream) { return stream.device(); }),
              AsksDriver(), AStream()),
      MakeRow("StreamRef::Synchronize",
              std::function([](StreamRef stream) { return stream.Synchronize(); }), AsksDriver(),
              AStream({kPrecondition})),
      MakeRow("StreamRef::IsDone", std::function([](StreamRef stream) { return stream.IsDone(); }),
              AsksDriver(), AStream({kPrecondition})),
      MakeRow("StreamRef::WaitFor",
              std::function([](StreamRef stream, Event* event) { return stream.WaitFor(*event); }),
              AsksDriver(), AStream(), Owner<Event>(&MadeEvent, empty())),
      MakeRow("StreamOfDlpack", std::function([](std::int64_t number, ContextRef context) {
                return cuguest::StreamOfDlpack(number, context);
              }),
              AsksNobody(), number({0}), Ref(kInvalid, 0)),
      MakeRow("StreamOfArrayInterface", std::function([](std::int64_t number, ContextRef context) {
                return cuguest::StreamOfArrayInterface(number, context);
              }),
              AsksNobody(), number({kInvalid}), Ref(kInvalid, 0)),
      MakeRow("StreamOfCudaStream", std::function([](int version, ContextRef context) {
                return cuguest::StreamOfCudaStream(version, 0, context);
              }),
              AsksNobody(),
              Among(0, {Is("is INT_MIN", INT_MIN, {kInvalid}), Is("is 1", 1, {kInvalid})}),
              Ref(kInvalid, 0)),
      MakeRow("StreamNumber",
              std::function([](StreamRef stream) { return cuguest::StreamNumber(stream); }),
              AsksNobody(),
              Parameter<StreamRef>{[](Given& given) { return given.things.stream.ref(); },
                                   {Is("is empty", StreamRef(), {kInvalid})}}),
      MakeRow("Stream Stream::Create",
              std::function([](ContextRef context, unsigned of, int priority) {
                return Stream::Create(context, of, priority);
              }),
              AsksDriver(), Ref(), flags(CU_STREAM_NON_BLOCKING),
              Among(0, {Is("is INT_MIN", INT_MIN, {0}), Is("is INT_MAX", INT_MAX, {0})})),
      MakeRow("Stream::Adopt", std::function([](CUstream stream, ContextRef context) {
                auto adopted = Stream::Adopt(stream, context);
                if (adopted.ok()) static_cast<void>(adopted->Leak());
                return adopted.status();
              }),
              {{0}, {0, kPrecondition}, {0, kNoPermission}, {0}, {0, kCancelled}},
              StreamHandle({kInvalid}), Ref(kInvalid, 0)),
      MakeRow("Stream::Release", std::function([](Stream* stream) { return stream->Release(); }),
              GivesBack(), Owner<Stream>(&MadeStream, {0})),
      MakeRow("Event Event::Create", std::function([](ContextRef context, unsigned of) {
                return Event::Create(context, of);
              }),
              AsksDriver(), Ref(), flags(CU_EVENT_DISABLE_TIMING)),
      MakeRow("Event::Record",
              std::function([](Event* event, StreamRef stream) { return event->Record(stream); }),
              AsksDriver(), Owner<Event>(&MadeEvent, empty()), AStream()),
      MakeRow("Event::IsDone", std::function([](Event* event) { return event->IsDone(); }),
              AsksDriver(), Owner<Event>(&MadeEvent, empty())),
      MakeRow("Event::Synchronize",
              std::function([](Event* event) { return event->Synchronize(); }), AsksDriver(),
              Owner<Event>(&MadeEvent, empty())),
      MakeRow("Event::ElapsedMilliseconds", std::function([](Event* start, Event* end) {
                return Event::ElapsedMilliseconds(*start, *end);
              }),
              // Neither was recorded.
              {Expected{kInvalid}.ByDriver(),
               {kPrecondition},
               {kNoPermission},
               {kInvalid},
               {kCancelled}},
              Owner<Event>(&MadeEvent, empty()), Owner<Event>(&MadeEvent, empty())),
      MakeRow("Event::Release", std::function([](Event* event) { return event->Release(); }),
              GivesBack(), Owner<Event>(&MadeEvent, {0})),
  };
}

}  // namespace

std::vector<Row> BordersOfMemory() {
  return Joined({Views(), Buffers(), Exports(), Copies(), Pictures(), UsersPages(), Streams()});
}

}  // namespace cuguest_faults
