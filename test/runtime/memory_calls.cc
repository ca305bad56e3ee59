// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls of memory.h, device_view.h, device_buffer.h, pinned_buffer.h, imported_buffer.h,
// pinned_pages.h, scratch_buffer.h, pitched_view.h, array.h, texture_object.h, surface_object.h and
// copy.h.

#include <sys/mman.h>

#include "cuguest/objects/array.h"
#include "cuguest/objects/capture_scope.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/imported_buffer.h"
#include "cuguest/objects/memory.h"
#include "cuguest/objects/pinned_buffer.h"
#include "cuguest/objects/pinned_pages.h"
#include "cuguest/objects/pitched_view.h"
#include "cuguest/objects/scratch_buffer.h"
#include "cuguest/objects/surface_object.h"
#include "cuguest/objects/texture_object.h"
#include "cuguest/runtime/device_buffer.h"
#include "cuguest/runtime/pointer.h"
#include "test/runtime/calls.h"

namespace cuguest_runtime_test {
namespace {

namespace runtime = cuguest::runtime;
using absl::StatusCode;
using cuguest::Array;
using cuguest::CaptureScope;
using cuguest::Describe;
using cuguest::DeviceBuffer;
using cuguest::DeviceView;
using cuguest::ExportedMemory;
using cuguest::HostSpan;
using cuguest::ImportedBuffer;
using cuguest::PinnedBuffer;
using cuguest::PinnedPages;
using cuguest::PitchedView;
using cuguest::ScratchBuffer;
using cuguest::StreamRef;
using cuguest::SurfaceObject;
using cuguest::TextureObject;
using runtime::ToDriver;

constexpr size_t kCount = Things::kCount;
constexpr size_t kPages = 8192;  // bytes
constexpr size_t kOverflow = ~size_t{0};

ExportedMemory NoHandle() {
  ExportedMemory exported;
  exported.bytes = kCount * sizeof(int);
  return exported;
}

HostSpan<const int> Source(const Things& t) { return t.numbers; }
HostSpan<int> Target(const Things& t) { return t.numbers; }

std::vector<Call> Descriptions() {
  std::vector<Call> calls = {
      {"Describe: null", kOk, [](const Things&) { return Describe(nullptr); }},
      {"Describe: a local variable", kOk,
       [](const Things& t) { return Describe(static_cast<const void*>(&t)); }},
      {"Describe: freed", kOk, [](const Things& t) { return Describe(t.freed); }},
      {"Describe: gone with its context", kOk,
       [](const Things& t) { return Describe(t.ended_view.get()); }},
      {"Array::Describe Description::ToString: an array", kOk,
       [](const Things& t) {
         const auto array = Array::Describe(t.array);
         return array.ok() ? Holds(!array->ToString().empty()) : array.status();
       }},
      {"Array::Describe: a null array", kRefused,
       [](const Things&) { return Array::Describe(CUarray{}); }},
      {"Name MemoryDescription::ToString MemoryDescription::offset MemoryDescription::bytes_left "
       "MemoryDescription::is_for_all_devices",
       kOk,
       [](const Things&) {
         const cuguest::MemoryDescription nothing;
         return Holds(nothing.offset() == 0 && nothing.bytes_left() == 0 &&
                      !nothing.is_for_all_devices() && !nothing.ToString().empty() &&
                      Name(nothing.kind) != nullptr);
       }},
      {"DeviceView DeviceView::get DeviceView::data DeviceView::size DeviceView::size_bytes "
       "DeviceView::empty DeviceView::context DeviceView::device",
       kOk,
       [](const Things& t) {
         const DeviceView<const int> view = t.view;
         return Holds(ToDriver(view.data()) == view.get() && view.size() == kCount &&
                      view.size_bytes() == kCount * sizeof(int) && !view.empty() &&
                      view.context() == t.home.ref() && view.device() == First());
       }},
      {"DeviceView::Borrow: null", kRefused,
       [](const Things&) { return DeviceView<int>::Borrow(CUdeviceptr{0}, 1); }},
      {"DeviceView::Borrow: host memory", kRefused,
       [](const Things& t) { return DeviceView<int>::Borrow(t.numbers.data(), kCount); }},
      {"DeviceView::Borrow: freed", kRefused,
       [](const Things& t) { return DeviceView<int>::Borrow(t.freed, 1); }},
      {"DeviceView::Borrow: more than there is", kRefused,
       [](const Things& t) { return DeviceView<int>::Borrow(t.memories.device, 1U << 20); }},
      {"DeviceView::Borrow: more than a size_t holds", kRefused,
       [](const Things& t) { return DeviceView<int>::Borrow(t.memories.device, kOverflow); }},
      {"DeviceView::Borrow: misaligned", kRefused,
       [](const Things& t) { return DeviceView<int>::Borrow(t.memories.device + 1, 1); }},
      {"DeviceView::Subview", kOk, [](const Things& t) { return t.view.Subview(1, 2); }},
      {"DeviceView::Subview: outside", StatusCode::kOutOfRange,
       [](const Things& t) { return t.view.Subview(kCount, 1); }},
  };
  // Device, managed, pinned, registered, pool and virtual memory.
  for (size_t kind = 0; kind < 6; ++kind) {
    calls.push_back({"Describe: each kind", kOk,
                     [kind](const Things& t) { return Describe(t.memories.All()[kind]); }});
    calls.push_back({"DeviceView::Borrow: each kind", kOk, [kind](const Things& t) {
                       return DeviceView<int>::Borrow(t.memories.All()[kind], kCount);
                     }});
  }
  return calls;
}

std::vector<Call> Buffers() {
  using Buffer = DeviceBuffer<int>;
  return {
      {"DeviceBuffer::Allocate", kOk,
       [](const Things& t) { return Buffer::Allocate(t.home.ref(), kCount); }},
      {"DeviceBuffer::Allocate: a destroyed context", kOver,
       [](const Things& t) { return Buffer::Allocate(t.ended, kCount); }},
      {"DeviceBuffer::Allocate: no context", kOver,
       [](const Things&) { return Buffer::Allocate(ContextRef(), kCount); }},
      {"DeviceBuffer::Allocate: more than a size_t holds", kRefused,
       [](const Things& t) { return Buffer::Allocate(t.home.ref(), kOverflow); }},
      {"DeviceBuffer::Allocate: more than there is", StatusCode::kResourceExhausted,
       [](const Things& t) { return Buffer::Allocate(t.home.ref(), Things::kTooMany); }},
      {"DeviceBuffer::CopyOf", kOk,
       [](const Things& t) { return Buffer::CopyOf(t.home.ref(), Source(t)); }},
      {"DeviceBuffer::CopyOf: a destroyed context", kOver,
       [](const Things& t) { return Buffer::CopyOf(t.ended, Source(t)); }},
      {"DeviceBuffer::CopyOf: null", kRefused,
       [](const Things& t) {
         return Buffer::CopyOf(t.home.ref(), HostSpan<const int>(nullptr, kCount));
       }},
      {"DeviceBuffer::AllocateAsync", kOk,
       [](const Things& t) { return Buffer::AllocateAsync(t.stream.ref(), kCount); }},
      {"DeviceBuffer::CopyOfAsync", kOk,
       [](const Things& t) -> Outcome {
         const auto values = Source(t);
         absl::StatusOr<Buffer> buffer = Buffer::CopyOfAsync(t.stream.ref(), values);
         if (!buffer.ok()) return buffer.status();
         const absl::Status status = Download(buffer->view(), t.stream.ref()).status();
         return {status, std::make_shared<Buffer>(*std::move(buffer))};
       }},
      {"DeviceBuffer::AllocateAsync: in a capture", kOver,
       [](const Things& t) { return Buffer::AllocateAsync(t.capturing.ref(), kCount); }},
      {"DeviceBuffer::AllocateAsync: no stream", kRefused,
       [](const Things&) { return Buffer::AllocateAsync(StreamRef(), kCount); }},
      {"DeviceBuffer::Adopt DeviceBuffer::Leak", kOk,
       [](const Things& t) {
         absl::StatusOr<Buffer> buffer = Buffer::Adopt(t.memories.device, kCount);
         if (!buffer.ok()) return buffer.status();
         return Holds(buffer->Leak().get() == t.memories.device);
       }},
      {"DeviceBuffer::Adopt: inside", kRefused,
       [](const Things& t) { return Buffer::Adopt(t.memories.device + 64, kCount); }},
      {"DeviceBuffer::Adopt: freed", kRefused,
       [](const Things& t) { return Buffer::Adopt(t.freed, kCount); }},
      {"DeviceBuffer::AdoptAsync", kOk,
       [](const Things& t) {
         absl::StatusOr<Buffer> buffer =
             Buffer::AdoptAsync(t.memories.pool, kCount, t.stream.ref());
         if (!buffer.ok()) return buffer.status();
         return Holds(buffer->Leak().get() == t.memories.pool);
       }},
      {"DeviceBuffer::AdoptAsync: no stream", kRefused,
       [](const Things& t) { return Buffer::AdoptAsync(t.memories.pool, kCount, StreamRef()); }},
      {"DeviceBuffer::Release", kOk,
       [](const Things& t) {
         absl::StatusOr<Buffer> buffer = Buffer::Allocate(t.home.ref(), kCount);
         return buffer.ok() ? buffer->Release() : buffer.status();
       }},
      {"DeviceBuffer::FreeAsync", kOk,
       [](const Things& t) {
         absl::StatusOr<Buffer> buffer = Buffer::AllocateAsync(t.stream.ref(), kCount);
         return buffer.ok() ? buffer->FreeAsync(t.stream.ref()) : buffer.status();
       }},
      {"DeviceBuffer DeviceBuffer::view DeviceBuffer::get DeviceBuffer::data DeviceBuffer::size "
       "DeviceBuffer::size_bytes DeviceBuffer::empty DeviceBuffer::context DeviceBuffer::device",
       kOk,
       [](const Things&) {
         Buffer empty;
         return Holds(empty.view().empty() && empty.get() == 0 && empty.data() == nullptr &&
                      empty.size() == 0 && empty.size_bytes() == 0 && empty.empty() &&
                      empty.context() == ContextRef() && empty.device() == First());
       }},
      {"PinnedBuffer::Allocate", kOk,
       [](const Things& t) { return PinnedBuffer<int>::Allocate(t.home.ref(), kCount); }},
      {"PinnedBuffer::Allocate: a destroyed context", kOver,
       [](const Things& t) { return PinnedBuffer<int>::Allocate(t.ended, kCount); }},
      {"PinnedBuffer::Allocate: more than a size_t holds", kRefused,
       [](const Things& t) { return PinnedBuffer<int>::Allocate(t.home.ref(), kOverflow); }},
      {"PinnedBuffer::Release", kOk,
       [](const Things& t) {
         absl::StatusOr<PinnedBuffer<int>> buffer =
             PinnedBuffer<int>::Allocate(t.home.ref(), kCount);
         return buffer.ok() ? buffer->Release() : buffer.status();
       }},
      {"PinnedBuffer PinnedBuffer::data PinnedBuffer::span PinnedBuffer::size "
       "PinnedBuffer::size_bytes PinnedBuffer::empty PinnedBuffer::context PinnedBuffer::device "
       "PinnedBuffer::Leak",
       kOk,
       [](const Things&) {
         PinnedBuffer<int> empty;
         return Holds(empty.data() == nullptr && empty.span().size() == 0 && empty.size() == 0 &&
                      empty.size_bytes() == 0 && empty.empty() && empty.context() == ContextRef() &&
                      empty.device() == First() && empty.Leak().data() == nullptr);
       }},
      {"ExportedMemory::Of", kOk, [](const Things& t) { return ExportedMemory::Of(t.view); }},
      {"ExportedMemory::Of: of a pool", kRefused,
       [](const Things& t) { return ExportedMemory::Of(t.pool_view); }},
      {"ImportedBuffer::Import: bytes that are no handle", kRefused,
       [](const Things& t) { return ImportedBuffer<int>::Import(t.home.ref(), NoHandle()); }},
      {"ImportedBuffer::Import: a destroyed context", kOver,
       [](const Things& t) { return ImportedBuffer<int>::Import(t.ended, NoHandle()); }},
      {"ImportedBuffer ImportedBuffer::view ImportedBuffer::get ImportedBuffer::size "
       "ImportedBuffer::size_bytes ImportedBuffer::empty ImportedBuffer::context "
       "ImportedBuffer::device ImportedBuffer::Release",
       kOk,
       [](const Things&) {
         ImportedBuffer<int> empty;
         const absl::Status released = empty.Release();
         if (!released.ok()) return released;
         return Holds(empty.view().empty() && empty.get() == 0 && empty.size() == 0 &&
                      empty.size_bytes() == 0 && empty.empty() && empty.context() == ContextRef() &&
                      empty.device() == First());
       }},
      {"AllocateBuffer", kOk,
       [](const Things& t) { return runtime::AllocateBuffer<int>(t.home.ref(), kCount); }},
      {"AllocateBuffer: a destroyed context", kOver,
       [](const Things& t) { return runtime::AllocateBuffer<int>(t.ended, kCount); }},
      {"AllocateBuffer: more than a size_t holds", kRefused,
       [](const Things& t) { return runtime::AllocateBuffer<int>(t.home.ref(), kOverflow); }},
      {"FreeBuffer", kOk,
       [](const Things& t) {
         absl::StatusOr<Buffer> buffer = Buffer::Allocate(t.home.ref(), kCount);
         return buffer.ok() ? runtime::FreeBuffer(*buffer) : buffer.status();
       }},
      {"FreeBuffer: of a pool", kRefused,
       [](const Things& t) -> Outcome {
         absl::StatusOr<Buffer> buffer = Buffer::AllocateAsync(t.stream.ref(), kCount);
         if (!buffer.ok()) return buffer.status();
         const absl::Status status = runtime::FreeBuffer(*buffer);
         return {status, std::make_shared<Buffer>(*std::move(buffer))};
       }},
  };
}

std::vector<Call> ScratchBuffers() {
  using Scratch = ScratchBuffer<int>;
  const auto released = [](const StreamRef& stream) {
    absl::StatusOr<Scratch> scratch = Scratch::Allocate(stream, kCount);
    return scratch.ok() ? scratch->Release() : scratch.status();
  };
  // With a graph of its own, which has what was allocated.
  const auto in_a_capture = [](const Things& t, const auto& job) -> Outcome {
    absl::StatusOr<CaptureScope> capture = CaptureScope::Begin(t.stream.ref());
    if (!capture.ok()) return capture.status();
    const absl::Status status = job(t.stream.ref());
    Outcome outcome = status.ok() ? Outcome(capture->End()) : Outcome(status);
    return Together(std::move(outcome), *std::move(capture));
  };
  return {
      {"ScratchBuffer::Allocate", kOk,
       [](const Things& t) { return Scratch::Allocate(t.stream.ref(), kCount); }},
      {"ScratchBuffer::Allocate: a stream that was handed in", kOk,
       [](const Things& t) { return Scratch::Allocate(t.stream.get(), kCount); }},
      {"ScratchBuffer::Allocate: in a capture", kOk,
       [in_a_capture](const Things& t) {
         return in_a_capture(
             t, [](const StreamRef& stream) { return Scratch::Allocate(stream, kCount).status(); });
       }},
      {"ScratchBuffer::Allocate: no stream", kRefused,
       [](const Things&) { return Scratch::Allocate(StreamRef(), kCount); }},
      {"ScratchBuffer::Allocate: more than a size_t holds", kRefused,
       [](const Things& t) { return Scratch::Allocate(t.stream.ref(), kOverflow); }},
      {"ScratchBuffer::Allocate: more than there is", StatusCode::kResourceExhausted,
       [](const Things& t) { return Scratch::Allocate(t.stream.ref(), Things::kTooMany); }},
      {"ScratchBuffer::Release", kOk,
       [released](const Things& t) { return released(t.stream.ref()); }},
      {"ScratchBuffer::Release: in a capture", kOk,
       [in_a_capture, released](const Things& t) { return in_a_capture(t, released); }},
      {"ScratchBuffer ScratchBuffer::view ScratchBuffer::get ScratchBuffer::data "
       "ScratchBuffer::size ScratchBuffer::size_bytes ScratchBuffer::empty ScratchBuffer::device",
       kOk,
       [](const Things&) {
         Scratch empty;
         return Holds(empty.view().empty() && empty.get() == 0 && empty.data() == nullptr &&
                      empty.size() == 0 && empty.size_bytes() == 0 && empty.empty() &&
                      empty.device() == First());
       }},
  };
}

absl::StatusOr<Array> ArrayIn(const Things& t) {
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  shape.Width = kCount;
  shape.Format = CU_AD_FORMAT_SIGNED_INT32;
  shape.NumChannels = 1;
  shape.Flags = CUDA_ARRAY3D_SURFACE_LDST;
  return Array::Create(t.home.ref(), shape);
}

// What `use` says of an array and gives, which end with the outcome.
template <typename Use>
std::function<Outcome(const Things&)> OfArray(const Use& use) {
  return [use](const Things& t) -> Outcome {
    absl::StatusOr<Array> array = ArrayIn(t);
    if (!array.ok()) return array.status();
    Outcome used = use(*array, t);
    using Both = std::pair<Array, std::shared_ptr<void>>;
    return {used.status, std::make_shared<Both>(*std::move(array), std::move(used.object))};
  };
}

std::vector<Call> Arrays() {
  return {
      {"Array::Create", kOk, [](const Things& t) { return ArrayIn(t); }},
      {"Array::Create: a destroyed context", kOver,
       [](const Things& t) { return Array::Create(t.ended, CUDA_ARRAY3D_DESCRIPTOR()); }},
      {"Array::Create: no shape", kRefused,
       [](const Things& t) { return Array::Create(t.home.ref(), CUDA_ARRAY3D_DESCRIPTOR()); }},
      {"Array::Release", kOk,
       [](const Things& t) {
         absl::StatusOr<Array> array = ArrayIn(t);
         return array.ok() ? array->Release() : array.status();
       }},
      {"Array Array::get Array::empty Array::description Array::context Array::Leak", kOk,
       [](const Things&) {
         Array empty;
         return Holds(empty.get() == nullptr && empty.empty() && empty.description().bytes == 0 &&
                      empty.context() == ContextRef() && empty.Leak() == nullptr);
       }},
      {"Upload: to an array, and back", kOk, OfArray([](const Array& array, const Things& t) {
         const absl::Status copied = Upload(array, Source(t));
         return copied.ok() ? Download(array, Target(t)) : copied;
       })},
      {"Copy: outside of an array", StatusCode::kOutOfRange,
       OfArray([](const Array& array, const Things& t) {
         Array::Part part;
         part.y = 1;
         return Copy(t.view, array, part);
       })},
      {"CopyAsync: to an array", kOk, OfArray([](const Array& array, const Things& t) {
         const absl::Status copied = CopyAsync(array, t.view, t.stream.ref());
         return copied.ok() ? t.stream.ref().Synchronize() : copied;
       })},
      {"TextureObject::Create", kOk, OfArray([](const Array& array, const Things&) {
         return TextureObject::Create(array, CUDA_TEXTURE_DESC());
       })},
      {"TextureObject::Create: a destroyed context", kOver,
       [](const Things& t) {
         return TextureObject::Create(t.ended, CUDA_RESOURCE_DESC(), CUDA_TEXTURE_DESC());
       }},
      {"TextureObject::Create: of more than there is", StatusCode::kOutOfRange,
       [](const Things& t) {
         TextureObject::Texels texels;
         texels.width = kOverflow;
         return TextureObject::Create(t.home.ref(), t.view, texels, CUDA_TEXTURE_DESC());
       }},
      {"TextureObject::Release", kOk, OfArray([](const Array& array, const Things&) {
         absl::StatusOr<TextureObject> texture = TextureObject::Create(array, CUDA_TEXTURE_DESC());
         return texture.ok() ? texture->Release() : texture.status();
       })},
      {"SurfaceObject::Create", kOk,
       OfArray([](const Array& array, const Things&) { return SurfaceObject::Create(array); })},
      {"SurfaceObject::Create: of an array that is not for one", kOver,
       [](const Things& t) { return SurfaceObject::Create(t.home.ref(), t.array); }},
      {"SurfaceObject::Release", kOk, OfArray([](const Array& array, const Things&) {
         absl::StatusOr<SurfaceObject> surface = SurfaceObject::Create(array);
         return surface.ok() ? surface->Release() : surface.status();
       })},
      {"TextureObject TextureObject::get TextureObject::empty TextureObject::context "
       "TextureObject::Leak SurfaceObject SurfaceObject::get SurfaceObject::empty "
       "SurfaceObject::context SurfaceObject::Leak",
       kOk,
       [](const Things&) {
         TextureObject texture;
         SurfaceObject surface;
         return Holds(texture.get() == 0 && texture.empty() && texture.context() == ContextRef() &&
                      texture.Leak() == 0 && surface.get() == 0 && surface.empty() &&
                      surface.context() == ContextRef() && surface.Leak() == 0);
       }},
  };
}

// The user's. Never unmapped: what a destructor could not unpin stays pinned.
void* NewPages() {
  return mmap(nullptr, kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

std::vector<Call> UsersPages() {
  return {
      {"PinnedPages::Pin", kOk,
       [](const Things& t) { return PinnedPages::Pin(t.home.ref(), NewPages(), kPages); }},
      {"PinnedPages::Pin: pinned already", kOk,
       [](const Things& t) {
         void* const pinned = reinterpret_cast<void*>(t.memories.pinned);
         return PinnedPages::Pin(t.home.ref(), pinned, kCount);
       }},
      {"PinnedPages::Pin: a destroyed context", kOver,
       [](const Things& t) { return PinnedPages::Pin(t.ended, NewPages(), kPages); }},
      {"PinnedPages::Pin: device memory", kRefused,
       [](const Things& t) {
         void* const device = reinterpret_cast<void*>(t.memories.device);
         return PinnedPages::Pin(t.home.ref(), device, kCount);
       }},
      {"PinnedPages::Release", kOk,
       [](const Things& t) {
         absl::StatusOr<PinnedPages> pages = PinnedPages::Pin(t.home.ref(), NewPages(), kPages);
         return pages.ok() ? pages->Release() : pages.status();
       }},
      {"PinnedPages PinnedPages::data PinnedPages::size_bytes PinnedPages::context "
       "PinnedPages::was_pinned PinnedPages::Leak",
       kOk,
       [](const Things&) {
         PinnedPages empty;
         empty.Leak();
         return Holds(empty.data() == nullptr && empty.size_bytes() == 0 &&
                      empty.context() == ContextRef() && !empty.was_pinned());
       }},
  };
}

// `kCount` elements, as four rows.
absl::StatusOr<PitchedView<int>> Picture(const DeviceView<int>& view) {
  return PitchedView<int>::Of(view, kCount / 4, 4);
}

// use(things, picture), of `view`.
template <typename Use>
std::function<Outcome(const Things&)> OfPicture(DeviceView<int> Things::*view, const Use& use) {
  return [view, use](const Things& t) -> Outcome {
    const absl::StatusOr<PitchedView<int>> picture = Picture(t.*view);
    return picture.ok() ? use(t, *picture) : picture.status();
  };
}

std::vector<Call> Pictures() {
  using View = PitchedView<int>;
  constexpr auto kView = &Things::view;
  return {
      {"PitchedView PitchedView::Of PitchedView::get PitchedView::data PitchedView::width "
       "PitchedView::height PitchedView::pitch PitchedView::empty PitchedView::context "
       "PitchedView::device",
       kOk,
       OfPicture(kView,
                 [](const Things& t, const View& picture) {
                   return Holds(picture.get() == t.view.get() && picture.data() == t.view.data() &&
                                picture.width() == kCount / 4 && picture.height() == 4 &&
                                picture.pitch() == kCount && !picture.empty() &&
                                picture.context() == t.home.ref() && picture.device() == First());
                 })},
      {"PitchedView::Borrow", kOk,
       [](const Things& t) { return View::Borrow(t.memories.device, 2, 4, 64); }},
      {"PitchedView::Borrow: rows that overlap", kRefused,
       [](const Things& t) { return View::Borrow(t.memories.device, 2, 4, 4); }},
      {"PitchedView::Subview", kOk,
       OfPicture(kView,
                 [](const Things&, const View& picture) { return picture.Subview(1, 1, 2, 2); })},
      {"Upload: a picture", kOk,
       OfPicture(kView,
                 [](const Things& t, const View& picture) { return Upload(picture, Source(t)); })},
      {"Download: a picture", kOk,
       OfPicture(kView, [](const Things& t,
                           const View& picture) { return Download(picture, Target(t), kCount); })},
      {"Copy: a picture", kOk,
       OfPicture(
           &Things::managed_view,
           [](const Things& t, const View& picture) { return Copy(picture, *Picture(t.view)); })},
      {"Copy: a picture of a destroyed context", kOver,
       OfPicture(
           &Things::ended_view,
           [](const Things& t, const View& picture) { return Copy(*Picture(t.view), picture); })},
      {"UploadAsync: a picture", kOk,
       OfPicture(kView,
                 [](const Things& t, const View& picture) {
                   return UploadAsync(picture, Source(t), t.stream.ref());
                 })},
      {"DownloadAsync: a picture", kOk,
       OfPicture(kView,
                 [](const Things& t, const View& picture) {
                   return DownloadAsync(picture, Target(t), t.stream.ref());
                 })},
      {"CopyAsync: a picture", kOk,
       OfPicture(&Things::pool_view,
                 [](const Things& t, const View& picture) {
                   return CopyAsync(picture, *Picture(t.view), t.stream.ref());
                 })},
  };
}

std::vector<Call> Copies() {
  return {
      {"Upload", kOk, [](const Things& t) { return Upload(t.view, Source(t)); }},
      {"Download: into a span", kOk, [](const Things& t) { return Download(t.view, Target(t)); }},
      {"Copy", kOk, [](const Things& t) { return Copy(t.managed_view, t.view); }},
      {"Download: of memory that no context owns", kDepends,
       [](const Things& t) { return Download(t.pool_view, Target(t)); }},
      {"Upload: of different lengths", kRefused,
       [](const Things& t) { return Upload(t.view, HostSpan<const int>(t.numbers.data(), 1)); }},
      {"Upload: null", kRefused,
       [](const Things& t) { return Upload(t.view, HostSpan<const int>(nullptr, kCount)); }},
      {"Upload: in a destroyed context", kOver,
       [](const Things& t) { return Upload(t.ended_view, Source(t)); }},
      {"Download", kOk, [](const Things& t) { return Download(t.view).status(); }},
      {"Download: in a destroyed context", kOver,
       [](const Things& t) { return Download(t.ended_view).status(); }},
      {"UploadAsync", kOk,
       [](const Things& t) { return UploadAsync(t.view, Source(t), t.stream.ref()); }},
      {"DownloadAsync", kOk,
       [](const Things& t) { return DownloadAsync(t.view, Target(t), t.stream.ref()); }},
      {"CopyAsync", kOk,
       [](const Things& t) { return CopyAsync(t.pool_view, t.view, t.stream.ref()); }},
      {"UploadAsync: in a destroyed context", kOver,
       [](const Things& t) { return UploadAsync(t.ended_view, Source(t), t.stream.ref()); }},
      {"UploadAsync: no stream", kRefused,
       [](const Things& t) { return UploadAsync(t.view, Source(t), StreamRef()); }},
      {"Fill", kOk, [](const Things& t) { return Fill(t.view, 3); }},
      {"Fill: in a destroyed context", kOver,
       [](const Things& t) { return Fill(t.ended_view, 3); }},
      {"FillAsync", kOk, [](const Things& t) { return FillAsync(t.view, 3, t.stream.ref()); }},
      {"FillAsync: no stream", kRefused,
       [](const Things& t) { return FillAsync(t.view, 3, StreamRef()); }},
      {"Zero", kOk, [](const Things& t) { return Zero(t.view); }},
      {"Zero: of memory that no context owns", kDepends,
       [](const Things& t) { return Zero(t.pool_view); }},
      {"ZeroAsync", kOk, [](const Things& t) { return ZeroAsync(t.view, t.stream.ref()); }},
      {"ZeroAsync: in a destroyed context", kOver,
       [](const Things& t) { return ZeroAsync(t.ended_view, t.stream.ref()); }},
  };
}

}  // namespace

std::vector<Call> MemoryCalls() {
  return Joined(
      {Descriptions(), Buffers(), ScratchBuffers(), Arrays(), UsersPages(), Pictures(), Copies()});
}

}  // namespace cuguest_runtime_test
