// SPDX-License-Identifier: Apache-2.0

#include "test/runtime/calls.h"

#include <string>

#include "cuguest/array.h"
#include "cuguest/copy.h"
#include "cuguest/device_buffer.h"
#include "cuguest/memory.h"
#include "cuguest/peer_access.h"
#include "cuguest/pinned_buffer.h"
#include "cuguest/runtime/array.h"
#include "cuguest/runtime/callee_scope.h"
#include "cuguest/runtime/context.h"
#include "cuguest/runtime/device.h"
#include "cuguest/runtime/device_buffer.h"
#include "cuguest/runtime/device_guard.h"
#include "cuguest/runtime/error.h"
#include "cuguest/runtime/function.h"
#include "cuguest/runtime/handle.h"
#include "cuguest/runtime/last_error_scope.h"
#include "cuguest/runtime/pointer.h"
#include "cuguest/runtime/texture.h"
#include "cuguest/runtime/version.h"
#include "cuguest/surface_object.h"
#include "cuguest/texture_object.h"
#include "kernels/saxpy.h"
#include "test/runtime/kernels.h"

namespace cuguest_runtime_test {
namespace {

namespace runtime = cuguest::runtime;
using absl::StatusCode;
using cuguest::Array;
using cuguest::ArrayCopy;
using cuguest::Copy;
using cuguest::CopyAsync;
using cuguest::Describe;
using cuguest::DeviceBuffer;
using cuguest::DeviceView;
using cuguest::Download;
using cuguest::Event;
using cuguest::HostSpan;
using cuguest::PeerAccess;
using cuguest::PinnedBuffer;
using cuguest::Stream;
using cuguest::StreamRef;
using cuguest::SurfaceObject;
using cuguest::Texels;
using cuguest::TextureObject;
using runtime::ToDriver;
using runtime::ToRuntime;

constexpr auto kOk = StatusCode::kOk;
constexpr auto kRefused = StatusCode::kInvalidArgument;
constexpr auto kOver = StatusCode::kFailedPrecondition;

// A program compiled for another major version of the runtime is told that it cannot work.
bool IsOfItsHeaders() { return runtime::QueryVersions().runtime / 1000 == CUDART_VERSION / 1000; }
constexpr auto kDepends = std::nullopt;
constexpr size_t kCount = Things::kCount;
constexpr size_t kOverflow = ~size_t{0};
constexpr size_t kTooMany = size_t{1} << 58;

template <typename T>
T Get(absl::StatusOr<T> result) {
  BOOST_TEST_REQUIRE(result.ok(), result.status().ToString());
  return *std::move(result);
}

template <typename Handle>
Handle Any() {
  static int somewhere = 0;
  return reinterpret_cast<Handle>(&somewhere);
}

// There and back again.
template <typename Handle>
bool Returns() {
  return ToDriver(ToRuntime(Any<Handle>())) == Any<Handle>();
}

DeviceView<int> ViewOf(CUdeviceptr pointer) {
  return Get(DeviceView<int>::Borrow(pointer, kCount));
}

Event RecordedIn(const Stream& stream) {
  Event event = Get(Event::Create(stream.context(), CU_EVENT_DEFAULT));
  BOOST_TEST(event.Record(stream.ref()).ok());
  return event;
}

HostSpan<const int> Source(const Things& t) { return t.numbers; }
HostSpan<int> Target(const Things& t) { return t.numbers; }

std::vector<Call> Conversions() {
  return {
      {"ToDriver ToRuntime: handles", kOk,
       [](const Things&) {
         return Holds(Returns<CUstream>() && Returns<CUevent>() && Returns<CUgraph>() &&
                      Returns<CUgraphNode>() && Returns<CUgraphExec>() && Returns<CUuserObject>() &&
                      Returns<CUmemoryPool>() && Returns<CUarray>() &&
                      Returns<CUmipmappedArray>() && Returns<CUfunction>() && Returns<CUkernel>());
       }},
      {"ToDriver ToRuntime: null and stream 0", kOk,
       [](const Things&) {
         return Holds(ToDriver(cudaEvent_t{}) == nullptr && ToDriver(cudaStream_t{}) != nullptr &&
                      ToDriver(static_cast<const void*>(nullptr)) == 0 &&
                      ToRuntime(CUdeviceptr{0}) == nullptr);
       }},
      {"ToDriver ToRuntime: pointers", kOk,
       [](const Things& t) {
         return Holds(ToDriver(ToRuntime(t.memories.device)) == t.memories.device);
       }},
      {"TextureToDriver TextureToRuntime SurfaceToDriver SurfaceToRuntime", kOk,
       [](const Things&) {
         return Holds(runtime::TextureToDriver(runtime::TextureToRuntime(7)) == 7 &&
                      runtime::SurfaceToDriver(runtime::SurfaceToRuntime(7)) == 7);
       }},
      {"ToDriver: a channel descriptor", kOk,
       [](const Things&) {
         return ToDriver(cudaChannelFormatDesc{32, 0, 0, 0, cudaChannelFormatKindFloat});
       }},
      {"ToDriver: an impossible channel descriptor", kRefused,
       [](const Things&) {
         return ToDriver(cudaChannelFormatDesc{3, 0, 0, 0, cudaChannelFormatKindFloat});
       }},
      {"ToRuntime: an array format", kOk,
       [](const Things&) {
         return ToRuntime(runtime::ArrayFormat{CU_AD_FORMAT_FLOAT, 1});
       }},
      {"ToRuntime: an impossible array format", kRefused,
       [](const Things&) {
         return ToRuntime(runtime::ArrayFormat{CU_AD_FORMAT_FLOAT, 3});
       }},
      {"ToSymbol", kOk,
       [](const Things& t) { return Holds(runtime::ToSymbol(t.kernel) != nullptr); }},
      {"ToRuntime FromRuntime: a device", kOk,
       [](const Things&) { return runtime::FromRuntime(ToRuntime(First())); }},
      {"FromRuntime: no device", StatusCode::kNotFound,
       [](const Things&) { return runtime::FromRuntime(4711); }},
      {"ToDriver ToRuntime ErrorName ErrorText IsSticky: errors", kOk,
       [](const Things&) {
         const cudaError_t error = ToRuntime(ToDriver(cudaErrorMemoryAllocation));
         return Holds(error == cudaErrorMemoryAllocation && !runtime::IsSticky(error) &&
                      runtime::ErrorName(error) != nullptr && runtime::ErrorText(error) != nullptr);
       }},
      {"ToStatus RuntimeCodeOf", kOk,
       [](const Things&) {
         const absl::Status status = runtime::ToStatus(cudaErrorMemoryAllocation, "allocate");
         return Holds(runtime::RuntimeCodeOf(status) == cudaErrorMemoryAllocation);
       }},
  };
}

std::vector<Call> Questions() {
  const bool can_work = IsOfItsHeaders();
  return {
      {"QueryVersions", kOk,
       [](const Things&) {
         const cuguest::Versions versions = runtime::QueryVersions();
         return versions.problem.ok() ? Holds(versions.runtime >= 12000) : versions.problem;
       }},
      {"CanWork", can_work ? kOk : kOver, [](const Things&) { return runtime::CanWork(); }},
      {"Explain", can_work ? kOk : kOver,
       [](const Things&) {
         const std::string sentence = runtime::Explain();
         return sentence.find("CUDA can work here") == 0 ? absl::OkStatus()
                                                         : absl::FailedPreconditionError(sentence);
       }},
      {"RuntimeContext::Query RuntimeContext::is_primary RuntimeContext::ToString", kOk,
       [](const Things&) {
         const auto context = runtime::RuntimeContext::Query();
         if (!context.ok()) return context.status();
         return Holds(!context->ToString().empty() &&
                      (!context->is_primary() || context->device == First()));
       }},
      {"KernelOf: null", kRefused, [](const Things&) { return runtime::KernelOf(nullptr); }},
      {"KernelOf", kOk, [](const Things&) { return runtime::KernelOf(ScaleSymbol()); }},
      {"FunctionOf: a symbol", kOk,
       [](const Things& t) { return runtime::FunctionOf(ScaleSymbol(), t.home.ref()); }},
      {"FunctionOf: null", kRefused,
       [](const Things& t) {
         return runtime::FunctionOf(static_cast<const void*>(nullptr), t.home.ref());
       }},
      {"FunctionOf: a symbol in a destroyed context", kOver,
       [](const Things& t) { return runtime::FunctionOf(ScaleSymbol(), t.ended); }},
      {"FunctionOf: a kernel", kOk,
       [](const Things& t) { return runtime::FunctionOf(t.kernel, t.home.ref()); }},
      {"FunctionOf: a kernel in a destroyed context", kOver,
       [](const Things& t) { return runtime::FunctionOf(t.kernel, t.ended); }},
      {"FunctionOf: a null kernel", kRefused,
       [](const Things& t) { return runtime::FunctionOf(CUkernel{}, t.home.ref()); }},
      {"LibraryOf", Since(12050, kOk),
       [](const Things& t) { return runtime::LibraryOf(t.kernel); }},
      {"LibraryOf: null", kRefused, [](const Things&) { return runtime::LibraryOf(nullptr); }},
      {"ModuleOf", kOk, [](const Things& t) { return runtime::ModuleOf(t.function); }},
      {"ModuleOf: null", kRefused, [](const Things&) { return runtime::ModuleOf(nullptr); }},
      {"PeerAccess::Query", kOk, [](const Things&) { return PeerAccess::Query(First(), First()); }},
      {"PeerAccess::Query: no device", StatusCode::kNotFound,
       [](const Things&) { return PeerAccess::Query(First(), Device::Borrow(4711)); }},
      {"PeerAccess::Enable: on one device", StatusCode::kUnimplemented,
       [](const Things& t) { return PeerAccess::Enable(t.home.ref(), t.other.ref()); }},
      {"PeerAccess::Enable: a destroyed context", kOver,
       [](const Things& t) { return PeerAccess::Enable(t.home.ref(), t.ended); }},
      {"PeerAccess PeerAccess::context PeerAccess::peer PeerAccess::was_enabled "
       "PeerAccess::Disable PeerAccess::Leak: of nobody",
       kOk,
       [](const Things&) {
         PeerAccess access;
         const bool empty = access.context() == ContextRef() && access.peer() == ContextRef() &&
                            !access.was_enabled();
         absl::Status status = access.Disable();
         access.Leak();
         return status.ok() ? Holds(empty) : status;
       }},
  };
}

std::vector<Call> Scopes() {
  using runtime::CalleeScope;
  using runtime::DeviceGuard;
  using runtime::LastErrorScope;
  return {
      {"CalleeScope CalleeScope::ok CalleeScope::result CalleeScope::doing CalleeScope::advice "
       "CalleeScope::Reassert CalleeScope::Restore",
       kOk,
       [](const Things& t) {
         CalleeScope scope(t.home.ref());
         return EnterAndLeave(scope);
       }},
      {"CalleeScope: by handle", kOk,
       [](const Things& t) {
         CalleeScope scope(t.home.get());
         return EnterAndLeave(scope);
       }},
      {"CalleeScope: a destroyed context", kOver,
       [](const Things& t) {
         CalleeScope scope(t.ended);
         return EnterAndLeave(scope);
       }},
      {"CalleeScope: null", kOver,
       [](const Things&) {
         CalleeScope scope(CUcontext{});
         return EnterAndLeave(scope);
       }},
      {"CalleeScope::Note", kOk,
       [](const Things& t) {
         CalleeScope scope(t.home.ref());
         if (!scope.ok()) return cuguest::ToStatus(scope);
         return runtime::ToStatus(scope.Note(cudaSuccess, "nothing"), "note a call");
       }},
      {"DeviceGuard DeviceGuard::ok DeviceGuard::status DeviceGuard::incarnation "
       "DeviceGuard::Reassert",
       kOk,
       [](const Things&) {
         DeviceGuard guard(First());
         if (!guard.ok()) return guard.status();
         const CUresult code = guard.Reassert();
         return code == CUDA_SUCCESS ? Holds(guard.incarnation().ok())
                                     : cuguest::ToStatus(code, "reassert a scope");
       }},
      {"DeviceGuard: that creates nothing", kDepends,
       [](const Things&) { return DeviceGuard(First(), cuguest::IfInactive::kRefuse).status(); }},
      {"DeviceGuard: no device", StatusCode::kNotFound,
       [](const Things&) { return DeviceGuard(Device::Borrow(4711)).status(); }},
      {"LastErrorScope LastErrorScope::before LastErrorScope::Note LastErrorScope::Check "
       "LastErrorScope::Restore",
       kOk,
       [](const Things&) {
         LastErrorScope scope;
         scope.Note(cudaSuccess, "nothing");
         const absl::Status status = scope.Check();
         return scope.Restore() && scope.before() == cudaPeekAtLastError()
                    ? status
                    : absl::InternalError("changed");
       }},
  };
}

std::vector<Call> Descriptions() {
  std::vector<Call> calls = {
      {"Describe: null", kOk, [](const Things&) { return Describe(nullptr); }},
      {"Describe: a local variable", kOk,
       [](const Things& t) { return Describe(static_cast<const void*>(&t)); }},
      {"Describe: freed", kOk, [](const Things& t) { return Describe(t.freed); }},
      {"Describe: gone with its context", kOk,
       [](const Things& t) { return Describe(t.ended_view.get()); }},
      {"Describe ArrayDescription::ToString: an array", kOk,
       [](const Things& t) {
         const auto array = Describe(t.array);
         return array.ok() ? Holds(!array->ToString().empty()) : array.status();
       }},
      {"Describe: a null array", kRefused, [](const Things&) { return Describe(CUarray{}); }},
      {"Name MemoryDescription::ToString MemoryDescription::offset MemoryDescription::bytes_left",
       kOk,
       [](const Things&) {
         const cuguest::MemoryDescription nothing;
         return Holds(nothing.offset() == 0 && nothing.bytes_left() == 0 &&
                      !nothing.ToString().empty() && Name(nothing.kind) != nullptr);
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
       [](const Things& t) { return Buffer::Allocate(t.home.ref(), kTooMany); }},
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
      {"DeviceBuffer::Free", kOk,
       [](const Things& t) {
         absl::StatusOr<Buffer> buffer = Buffer::Allocate(t.home.ref(), kCount);
         return buffer.ok() ? buffer->Free() : buffer.status();
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
      {"PinnedBuffer::Free", kOk,
       [](const Things& t) {
         absl::StatusOr<PinnedBuffer<int>> buffer =
             PinnedBuffer<int>::Allocate(t.home.ref(), kCount);
         return buffer.ok() ? buffer->Free() : buffer.status();
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
      {"Array::Destroy", kOk,
       [](const Things& t) {
         absl::StatusOr<Array> array = ArrayIn(t);
         return array.ok() ? array->Destroy() : array.status();
       }},
      {"Array Array::get Array::empty Array::description Array::context Array::Leak", kOk,
       [](const Things&) {
         Array empty;
         return Holds(empty.get() == nullptr && empty.empty() && empty.description().bytes == 0 &&
                      empty.context() == ContextRef() && empty.Leak() == nullptr);
       }},
      {"Copy: to and from an array", kOk, OfArray([](const Array& array, const Things& t) {
         const absl::Status copied = Copy(array, Source(t));
         return copied.ok() ? Copy(Target(t), array) : copied;
       })},
      {"Copy: outside of an array", StatusCode::kOutOfRange,
       OfArray([](const Array& array, const Things& t) {
         ArrayCopy part;
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
         Texels texels;
         texels.width = kOverflow;
         return TextureObject::Create(t.home.ref(), t.view, texels, CUDA_TEXTURE_DESC());
       }},
      {"TextureObject::Destroy", kOk, OfArray([](const Array& array, const Things&) {
         absl::StatusOr<TextureObject> texture = TextureObject::Create(array, CUDA_TEXTURE_DESC());
         return texture.ok() ? texture->Destroy() : texture.status();
       })},
      {"SurfaceObject::Create", kOk,
       OfArray([](const Array& array, const Things&) { return SurfaceObject::Create(array); })},
      {"SurfaceObject::Create: of an array that is not for one", kOver,
       [](const Things& t) { return SurfaceObject::Create(t.home.ref(), t.array); }},
      {"SurfaceObject::Destroy", kOk, OfArray([](const Array& array, const Things&) {
         absl::StatusOr<SurfaceObject> surface = SurfaceObject::Create(array);
         return surface.ok() ? surface->Destroy() : surface.status();
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

std::vector<Call> Copies() {
  return {
      {"Copy: from the host", kOk, [](const Things& t) { return Copy(t.view, Source(t)); }},
      {"Copy: to the host", kOk, [](const Things& t) { return Copy(Target(t), t.view); }},
      {"Copy: on the device", kOk, [](const Things& t) { return Copy(t.managed_view, t.view); }},
      {"Copy: of memory that no context owns", kDepends,
       [](const Things& t) { return Copy(Target(t), t.pool_view); }},
      {"Copy: of different lengths", kRefused,
       [](const Things& t) { return Copy(t.view, HostSpan<const int>(t.numbers.data(), 1)); }},
      {"Copy: null", kRefused,
       [](const Things& t) { return Copy(t.view, HostSpan<const int>(nullptr, kCount)); }},
      {"Copy: in a destroyed context", kOver,
       [](const Things& t) { return Copy(t.ended_view, Source(t)); }},
      {"Download", kOk, [](const Things& t) { return Download(t.view).status(); }},
      {"Download: in a destroyed context", kOver,
       [](const Things& t) { return Download(t.ended_view).status(); }},
      {"CopyAsync: from the host", kOk,
       [](const Things& t) { return CopyAsync(t.view, Source(t), t.stream.ref()); }},
      {"CopyAsync: to the host", kOk,
       [](const Things& t) { return CopyAsync(Target(t), t.view, t.stream.ref()); }},
      {"CopyAsync: on the device", kOk,
       [](const Things& t) { return CopyAsync(t.pool_view, t.view, t.stream.ref()); }},
      {"CopyAsync: in a destroyed context", kOver,
       [](const Things& t) { return CopyAsync(t.ended_view, Source(t), t.stream.ref()); }},
      {"CopyAsync: no stream", kRefused,
       [](const Things& t) { return CopyAsync(t.view, Source(t), StreamRef()); }},
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

std::vector<Call> Streams() {
  return {
      {"StreamRef StreamRef::Borrow StreamRef::get StreamRef::context", kOk,
       [](const Things& t) {
         const auto ref = StreamRef::Borrow(t.stream.get());
         if (!ref.ok()) return ref.status();
         return Holds(ref->get() == t.stream.get() && ref->context() == t.home.ref());
       }},
      {"StreamRef::Borrow: stream 0", kDepends,
       [](const Things&) { return StreamRef::Borrow(nullptr); }},
      {"StreamRef::Borrow: stream 0 of a context", kOk,
       [](const Things& t) { return StreamRef::Borrow(nullptr, t.home.ref()).IsDone(); }},
      {"StreamRef::device", kOk, [](const Things& t) { return t.stream.ref().device(); }},
      {"StreamRef::device: no stream", kRefused,
       [](const Things&) { return StreamRef().device(); }},
      {"StreamRef::capture_state", kOk,
       [](const Things& t) {
         return Holds(t.stream.ref().capture_state() == cuguest::CaptureState::kNone);
       }},
      {"StreamRef::Synchronize", kOk, [](const Things& t) { return t.stream.ref().Synchronize(); }},
      {"StreamRef::Synchronize: in a capture", kOver,
       [](const Things& t) { return t.capturing.ref().Synchronize(); }},
      {"StreamRef::Synchronize: no stream", kRefused,
       [](const Things&) { return StreamRef().Synchronize(); }},
      {"StreamRef::IsDone", kOk, [](const Things& t) { return t.stream.ref().IsDone(); }},
      {"StreamRef::IsDone: a destroyed context", kOver,
       [](const Things& t) { return StreamRef::Borrow(nullptr, t.ended).IsDone(); }},
      {"StreamRef::WaitFor", kOk,
       [](const Things& t) { return t.stream.ref().WaitFor(t.others_event); }},
      {"StreamRef::WaitFor: no event", kRefused,
       [](const Things& t) { return t.stream.ref().WaitFor(Event()); }},
      {"StreamRef::WaitFor: a destroyed context", kOver,
       [](const Things& t) { return t.stream.ref().WaitFor(t.ended_event); }},
      {"Stream::Create", kOk, [](const Things& t) { return Stream::Create(t.home.ref()); }},
      {"Stream::Create: a destroyed context", kOver,
       [](const Things& t) { return Stream::Create(t.ended); }},
      {"Stream::Create: other flags", kRefused,
       [](const Things& t) { return Stream::Create(t.home.ref(), 4711); }},
      {"Stream::Adopt Stream::Leak", kOk,
       [](const Things& t) {
         absl::StatusOr<Stream> stream = Stream::Adopt(t.home.stream(), t.home.ref());
         return stream.ok() ? Holds(stream->Leak() == t.home.stream()) : stream.status();
       }},
      {"Stream::Adopt: stream 0", kRefused,
       [](const Things& t) { return Stream::Adopt(nullptr, t.home.ref()); }},
      {"Stream::Release", kOk,
       [](const Things& t) {
         absl::StatusOr<Stream> stream = Stream::Create(t.home.ref());
         return stream.ok() ? stream->Release() : stream.status();
       }},
      {"Stream Stream::ref Stream::get Stream::context", kOk,
       [](const Things&) {
         const Stream empty;
         return Holds(empty.ref() == StreamRef() && empty.get() == nullptr &&
                      empty.context() == ContextRef());
       }},
  };
}

std::vector<Call> Events() {
  return {
      {"Event::Create", kOk, [](const Things& t) { return Event::Create(t.home.ref()); }},
      {"Event::Create: a destroyed context", kOver,
       [](const Things& t) { return Event::Create(t.ended); }},
      {"Event::Record", kOk,
       [](const Things& t) -> Outcome {
         absl::StatusOr<Event> event = Event::Create(t.home.ref());
         if (!event.ok()) return event.status();
         const absl::Status status = event->Record(t.stream.ref());
         return {status, std::make_shared<Event>(*std::move(event))};
       }},
      {"Event::Release", kOk,
       [](const Things& t) {
         absl::StatusOr<Event> event = Event::Create(t.home.ref());
         return event.ok() ? event->Release() : event.status();
       }},
      {"Event::Record: of another context", kRefused,
       [](const Things& t) -> Outcome {
         absl::StatusOr<Event> event = Event::Create(t.other.ref());
         if (!event.ok()) return event.status();
         const absl::Status status = event->Record(t.stream.ref());
         return {status, std::make_shared<Event>(*std::move(event))};
       }},
      {"Event::IsDone", kOk, [](const Things& t) { return t.event.IsDone(); }},
      {"Event::IsDone: a destroyed context", kOver,
       [](const Things& t) { return t.ended_event.IsDone(); }},
      {"Event::Synchronize", kOk, [](const Things& t) { return t.event.Synchronize(); }},
      {"Event::Synchronize: no event", kRefused,
       [](const Things&) { return Event().Synchronize(); }},
      {"Event::ElapsedMilliseconds", kOk,
       [](const Things& t) { return Event::ElapsedMilliseconds(t.event, t.event); }},
      {"Event::ElapsedMilliseconds: of two contexts", kRefused,
       [](const Things& t) { return Event::ElapsedMilliseconds(t.event, t.others_event); }},
      {"Event Event::get Event::context Event::Leak", kOk,
       [](const Things&) {
         Event empty;
         return Holds(empty.get() == nullptr && empty.context() == ContextRef() &&
                      empty.Leak() == nullptr);
       }},
  };
}

}  // namespace

std::vector<Call> Joined(const std::vector<std::vector<Call>>& tables) {
  std::vector<Call> all;
  for (const std::vector<Call>& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

Things::Things() {
  const cuguest::PrimaryContext primary = RetainPrimary();
  ended = primary.incarnation();
  SetStack({primary.get()});
  CUdeviceptr memory = 0;
  OK(RAW(cuMemAlloc)(&memory, kCount * sizeof(int)));
  ended_view = ViewOf(memory);
  ended_event = Get(Event::Create(ended));
  RT_OK(cudaFree(nullptr));  // the runtime looks, once, which context is the primary one
  RT_OK(cudaDeviceReset());  // which ends its incarnation, and the runtime's reference
  SetStack({});
  BOOST_TEST(!PrimaryIsActive());

  view = ViewOf(memories.device);
  managed_view = ViewOf(memories.managed);
  pool_view = ViewOf(memories.pool);
  stream = Get(Stream::Create(home.ref()));
  capturing = Get(Stream::Create(home.ref()));
  event = RecordedIn(stream);
  const Stream others = Get(Stream::Create(other.ref()));
  others_event = RecordedIn(others);

  home.Enter();
  OK(RAW(cuMemAlloc)(&freed, 4096));
  OK(RAW(cuMemFree)(freed));
  CUDA_ARRAY_DESCRIPTOR shape = {};
  shape.Width = 8;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  OK(RAW(cuArrayCreate)(&array, &shape));
  SetStack({});
  OK(RAW(cuLibraryLoadData)(&library, cuguest_kernels::saxpy_fatbin, nullptr, nullptr, 0, nullptr,
                            nullptr, 0));
  OK(RAW(cuLibraryGetKernel)(&kernel, library, "saxpy"));
  function = Get(runtime::FunctionOf(kernel, home.ref()));
  Get(runtime::FunctionOf(ScaleSymbol(), home.ref()));  // what it loads stays
  OK(RAW(cuStreamBeginCapture)(capturing.get(), CU_STREAM_CAPTURE_MODE_RELAXED));
}

Things::~Things() {
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(capturing.get(), &graph));
  if (graph != nullptr) OK(RAW(cuGraphDestroy)(graph));
  OK(RAW(cuArrayDestroy)(array));
  OK(RAW(cuLibraryUnload)(library));
}

const std::vector<Call>& Calls() {
  static const auto& calls =
      *new std::vector<Call>(Joined({Conversions(), Questions(), Scopes(), Descriptions(),
                                     Buffers(), Arrays(), Copies(), Streams(), Events()}));
  return calls;
}

const std::vector<Call>& CallsThatTheRuntimeRefuses() {
  static const auto& calls = *new std::vector<Call>{
      {"KernelOf: no symbol", StatusCode::kNotFound,
       [](const Things& t) { return runtime::KernelOf(&t); }},
      {"FunctionOf: no symbol", StatusCode::kNotFound,
       [](const Things& t) {
         return runtime::FunctionOf(static_cast<const void*>(&t), t.home.ref());
       }},
      {"AllocateBuffer: more than there is", StatusCode::kResourceExhausted,
       [](const Things& t) { return runtime::AllocateBuffer<int>(t.home.ref(), kTooMany); }},
      {"CalleeScope: around a call that fails", StatusCode::kResourceExhausted,
       [](const Things& t) {
         runtime::CalleeScope scope(t.home.ref());
         if (!scope.ok()) return cuguest::ToStatus(scope);
         void* pointer = nullptr;
         return runtime::ToStatus(scope.Note(cudaMalloc(&pointer, kTooMany), "cudaMalloc"),
                                  "allocate");
       }},
  };
  return calls;
}

void InEveryState(const Things& things,
                  const std::function<void(const char* name, const SetUp& set_stack)>& body) {
  const CUcontext home = things.home.get();
  const CUcontext other = things.other.get();
  const auto in = [&](const char* name, const std::vector<CUcontext>& stack) {
    const SetUp set_stack = [&stack] { SetStack(stack); };
    BOOST_TEST_CONTEXT(name) { body(name, set_stack); }
    SetStack({});
  };
  EndPrimary();
  in("nothing current, the primary inactive", {});
  in("the context of the things current", {home});
  in("another context current", {other});
  const cuguest::PrimaryContext primary = RetainPrimary();
  in("nothing current, the primary active", {});
  in("the primary current", {primary.get()});
  in("three contexts", {primary.get(), home, other});
}

}  // namespace cuguest_runtime_test
