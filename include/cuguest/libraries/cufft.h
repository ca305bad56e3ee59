// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 4
/// \file
/// cuFFT in any context, from any thread: plans by layout and context, and a scope that has one to
/// itself, in its context, on the right stream. Note [Where a handle may be used] holds for plans.
///
///   absl::Status Transform(CufftPlans& plans, const StreamRef& stream, cufftComplex* data) {
///     const runtime::CufftScope fft(plans, CufftPlans::Layout::Line(4096, CUFFT_C2C, 64), stream);
///     if (!fft.ok()) return fft.status();
///     const cufftResult code = cufftExecC2C(fft.handle(), data, data, CUFFT_FORWARD);
///     return runtime::ToStatus(code, "transform");
///   }

#ifndef CUGUEST_LIBRARIES_CUFFT_H_
#define CUGUEST_LIBRARIES_CUFFT_H_

#include <cuda.h>
#include <cufft.h>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/libraries/internal/cufft.h"
#include "cuguest/libraries/internal/handle_pool.h"
#include "cuguest/libraries/internal/library_handle.h"
#include "cuguest/libraries/internal/toolkit_library.h"
#include "cuguest/libraries/library.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/stream.h"
#include "cuguest/runtime/error.h"

#define CUGUEST_CUFFT_ENTRIES(X)               \
  X(Create, cufftCreate)                       \
  X(Destroy, cufftDestroy)                     \
  X(GetProperty, cufftGetProperty)             \
  X(SetAutoAllocation, cufftSetAutoAllocation) \
  X(MakePlanMany64, cufftMakePlanMany64)       \
  X(SetStream, cufftSetStream)                 \
  X(SetWorkArea, cufftSetWorkArea)

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// As ToStatus(cublasStatus_t). cuFFT has no words of its own: these are from its documentation.
[[nodiscard]] inline absl::Status ToStatus(cufftResult code, std::string_view doing,
                                           std::string_view object = {}) {
  return internal::ToLibraryStatus(internal::Library::kCufft, code, doing, object);
}

/// As CublasCodeOf().
[[nodiscard]] inline std::optional<cufftResult> CufftCodeOf(const absl::Status& status) {
  return internal::LibraryCodeOfType<cufftResult>(internal::Library::kCufft, status);
}

namespace impl {

struct Cufft {
  CUGUEST_CUFFT_ENTRIES(CUGUEST_LIBRARY_POINTER)

  static constexpr internal::Library kLibrary = internal::Library::kCufft;
  static constexpr char kStem[] = "libcufft";
  static constexpr int kMajor = CUFFT_VER_MAJOR;
  using Handle = cufftHandle;
  static constexpr bool kHasLayouts = true;
  static constexpr bool kTakesWorkspace = false;  // CufftScope does

 protected:
  Cufft() = default;
  void Link() { CUGUEST_CUFFT_ENTRIES(CUGUEST_LIBRARY_LINK); }
  std::vector<internal::LibraryEntry> Entries() {
    return {CUGUEST_CUFFT_ENTRIES(CUGUEST_LIBRARY_FIND)};
  }
};

template <>
class LibraryHandle<Cufft>;

}  // namespace impl

#undef CUGUEST_CUFFT_ENTRIES

/// See ToolkitFunctions. Open() opens "libcufft.so.<major version of the header>" by default.
using CufftLibrary = ToolkitFunctions<impl::Cufft>;

/// The cuFFT plans of a library or program, for each layout its own. They are searched in sequence:
/// for some dozens of layouts in a context. LibraryHandles has the rest of the contract.
/// Cost:    on an H100 a plan takes 0.4 ms to make, and eight take 2 MiB of device memory; the
///          first in a process takes 0.2 s, and the first of some sizes as much, to compile code.
///          Making one takes twelve or thirteen driver calls besides, waits for stream 0 (in
///          cuguest), and may wait for all work of its context (in cuFFT).
class CufftPlans : public LibraryHandles<impl::Cufft> {
 public:
  /// What is transformed: `batch` transforms of `rank` dimensions, the last of which is contiguous
  /// unless the layout says otherwise. A value; plans are found by it, member by member. In real
  /// transforms (R2C, C2R and their doubles) `sizes` are those of the real side, and the complex
  /// side has sizes[rank - 1] / 2 + 1 elements in the last dimension.
  struct Layout {
    static constexpr int kMaxRank = 3;

    /// Where one side's elements are, in elements of that side: element x of transform b, in one
    /// dimension, is at b * distance + x * stride; `embed` are the sizes of the array that the
    /// transform is a part of, of which the first is ignored. As in cufftMakePlanMany64.
    struct Side {
      long long embed[kMaxRank] = {};
      long long stride = 0;  ///< 0: contiguous, and the other members mean nothing
      long long distance = 0;

      friend bool operator==(const Side& a, const Side& b) noexcept {
        return a.embed[0] == b.embed[0] && a.embed[1] == b.embed[1] && a.embed[2] == b.embed[2] &&
               a.stride == b.stride && a.distance == b.distance;
      }
    };

    cufftType type = CUFFT_C2C;
    int rank = 0;
    long long sizes[kMaxRank] = {};  ///< slowest first
    long long batch = 1;
    Side input;
    Side output;

    /// Contiguous layouts of 1, 2 and 3 dimensions.
    [[nodiscard]] static constexpr Layout Line(long long n, cufftType type = CUFFT_C2C,
                                               long long batch = 1) noexcept {
      return {type, 1, {n, 0, 0}, batch, {}, {}};
    }
    [[nodiscard]] static constexpr Layout Plane(long long rows, long long columns,
                                                cufftType type = CUFFT_C2C,
                                                long long batch = 1) noexcept {
      return {type, 2, {rows, columns, 0}, batch, {}, {}};
    }
    [[nodiscard]] static constexpr Layout Volume(long long planes, long long rows,
                                                 long long columns, cufftType type = CUFFT_C2C,
                                                 long long batch = 1) noexcept {
      return {type, 3, {planes, rows, columns}, batch, {}, {}};
    }
    /// `layout` with its elements elsewhere: on both sides or on neither, as cuFFT requires.
    [[nodiscard]] static constexpr Layout Many(const Layout& layout, const Side& input,
                                               const Side& output) noexcept {
      return {layout.type,  layout.rank, {layout.sizes[0], layout.sizes[1], layout.sizes[2]},
              layout.batch, input,       output};
    }

    /// Whether cuFFT can be asked for it; it may still refuse, as CUFFT_NOT_SUPPORTED. Calls none.
    /// Errors: kInvalidArgument: the rank, type, a size, batch, stride or distance is out of range,
    ///         a side is smaller than what is transformed, only one side is contiguous, or a side
    ///         has 2^63 - 1 bytes or more. The text says which.
    [[nodiscard]] absl::Status Check() const { return internal::CheckFftLayout(Shape()); }

    /// Bytes from the first element to the end of the last, for CufftScope::CheckOperand.
    /// Errors: those of Check()
    [[nodiscard]] absl::StatusOr<std::size_t> InputBytes() const {
      return internal::FftBytes(Shape(), /*of_input=*/true);
    }
    [[nodiscard]] absl::StatusOr<std::size_t> OutputBytes() const {
      return internal::FftBytes(Shape(), /*of_input=*/false);
    }

    /// "2 x 4096 C2C"
    [[nodiscard]] std::string ToString() const { return internal::FftLayoutText(Shape()); }

    friend bool operator==(const Layout& a, const Layout& b) noexcept {
      return a.type == b.type && a.rank == b.rank && a.sizes[0] == b.sizes[0] &&
             a.sizes[1] == b.sizes[1] && a.sizes[2] == b.sizes[2] && a.batch == b.batch &&
             a.input == b.input && a.output == b.output;
    }
    friend bool operator!=(const Layout& a, const Layout& b) noexcept { return !(a == b); }

   private:
    friend class impl::LibraryHandle<impl::Cufft>;

    [[nodiscard]] internal::FftShape Shape() const {
      return {static_cast<int>(type),
              rank,
              sizes,
              batch,
              {input.embed, input.stride, input.distance},
              {output.embed, output.stride, output.distance}};
    }
  };

  using LibraryHandles::LibraryHandles;

  /// As CublasHandles::Prepare, with plans of `layout`, but only while nothing in the context
  /// captures: see Note [Plans and captures]. The plans have no work area of their own yet.
  /// Errors: also those of Layout::Check(), and kFailedPrecondition: a blocking stream of the
  ///         context captures.
  absl::Status Prepare(const ContextRef& context, const Layout& layout, std::size_t count = 1,
                       Location where = Location::Here()) {
    return pools().Prepare(context, &layout, count, where).status();
  }

  /// The bytes of work area that a plan of `layout` needs in `context`; 0 if none.
  /// Errors and cost: those of Prepare(context, layout); it makes a plan if there is none.
  [[nodiscard]] absl::StatusOr<std::size_t> WorkBytes(const ContextRef& context,
                                                      const Layout& layout,
                                                      Location where = Location::Here());
};

/// Borrows a plan of `layout` for itself, makes the context of `stream` current, puts the thread
/// into relaxed capture mode, and sets the plan's stream and work area. Its end restores the
/// caller's stack and capture mode; stream and work area, or what else was set in their place, stay
/// in the idle plan until the next scope sets its own.
/// Requires: no callbacks or properties are set on the plan: they would stay on it.
/// Stack, count: as CublasScope.
/// Threads: bound; as CublasScope.
/// Errors:  those of CublasScope and of CufftPlans::Layout::Check, and
///            kInvalidArgument     the caller's work area is smaller than WorkBytes()
///            kFailedPrecondition  no plan is idle, or it needs a work area and none is given,
///                                 while `stream` captures; no plan is idle while a blocking stream
///                                 of its context captures
///            kFailedPrecondition  from Leave(): `stream` began to capture inside a scope that uses
///                                 the plan's own work area: the plan was given up
/// Cost:    with an idle plan and the context current, five contention-free driver calls (six for
///          stream 0 and CU_STREAM_PER_THREAD), one cufftSetStream, and, if the plan needs a work
///          area, one cufftSetWorkArea. A thread finds the plan that it had last; threads wait for
///          each other in cufftSetStream, which takes 26 ns on one thread of an H100 and 1.4 us on
///          each of 16. With the plan's own area, which the first such scope allocates, eleven
///          driver calls more on a created stream: to ask about the capture, twice, to wait for the
///          last user, to record the event for the next, and to ask what is current at the end.
class [[nodiscard]] CufftScope : public LibraryScope<impl::Cufft> {
 public:
  /// With the plan's own work area.
  /// Requires: `stream` stays alive until the scope has ended.
  CufftScope(CufftPlans& plans, const CufftPlans::Layout& layout, const StreamRef& stream,
             Location where = Location::Here())
      : LibraryScope(plans, {stream, &layout, nullptr}, where) {}

  /// The same for a stream that was handed in: as CublasScope.
  CufftScope(CufftPlans& plans, const CufftPlans::Layout& layout, internal::CallersStream stream,
             Location where = Location::Here())
      : LibraryScope(plans,
                     internal::RequestFor(
                         StreamRef::Borrow(stream.handle, internal::ZeroStream::kLegacy), &layout),
                     where) {}

  /// With `work_area`.
  /// Requires: `work_area` stays as long as CublasScope's `workspace`.
  CufftScope(CufftPlans& plans, const CufftPlans::Layout& layout, const StreamRef& stream,
             DeviceView<std::byte> work_area, Location where = Location::Here())
      : LibraryScope(plans, {stream, &layout, &internal::RangeAccess::Of(work_area)}, where) {}
};

namespace impl {

// A plan, and the work area of its own.
template <>
class LibraryHandle<Cufft> {
  using Layout = CufftPlans::Layout;

 public:
  static absl::StatusOr<void*> Make(const void* library, const ContextRef& context,
                                    const void* kind) {
    const Layout& layout = *static_cast<const Layout*>(kind);
    absl::Status valid = layout.Check();
    if (!valid.ok()) return valid;
    std::unique_ptr<LibraryHandle> made(new (std::nothrow) LibraryHandle(layout));
    if (made == nullptr) return absl::ResourceExhaustedError("make a cuFFT plan: no host memory");
    const Cufft& cufft = Of(library);
    absl::Status created = ToStatus(cufft.Create(&made->plan_), "make a cuFFT plan");
    if (!created.ok()) return created;
    absl::Status planned = made->Plan(cufft, context);
    if (planned.ok()) return made.release();
    static_cast<void>(cufft.Destroy(made->plan_));
    return planned;
  }

  static bool Fits(const void* self, const void* kind) {
    return static_cast<const LibraryHandle*>(self)->layout_ == *static_cast<const Layout*>(kind);
  }

  static absl::Status Begin(const void* library, void* self,
                            const internal::HandleRequest& request) {
    const Cufft& cufft = Of(library);
    auto& plan = *static_cast<LibraryHandle*>(self);
    // Each time: the plan's last user may have given it another, which cuFFT does not tell.
    absl::Status status = ToStatus(cufft.SetStream(plan.plan_, request.stream.get()),
                                   "set the stream of a cuFFT plan");
    if (!status.ok() || plan.work_bytes_ == 0) return status;
    const absl::StatusOr<CUdeviceptr> area =
        plan.area_.Begin(request, plan.work_bytes_, plan.layout_.Shape());
    if (!area.ok()) return area.status();
    return ToStatus(cufft.SetWorkArea(plan.plan_, reinterpret_cast<void*>(*area)),
                    "set the work area of a cuFFT plan");
  }

  static internal::PutBack End(const void*, void* self, absl::Status* why) {
    auto& plan = *static_cast<LibraryHandle*>(self);
    if (plan.work_bytes_ == 0) return internal::PutBack::kUnchanged;
    return plan.area_.End(why, plan.work_bytes_, plan.layout_.Shape());
  }

  static void Destroy(const void* library, void* self, bool is_over) {
    const std::unique_ptr<LibraryHandle> ending(static_cast<LibraryHandle*>(self));
    if (is_over) {
      ending->area_.Leak();
    } else {
      static_cast<void>(Of(library).Destroy(ending->plan_));
    }
  }

  static cufftHandle Get(void* self) {
    return self == nullptr ? kNone : static_cast<LibraryHandle*>(self)->plan_;
  }
  static std::size_t WorkBytes(const void* self) {
    return static_cast<const LibraryHandle*>(self)->work_bytes_;
  }

  static constexpr internal::HandleType kType = {"a cuFFT plan",
                                                 /*make_ends_captures=*/true,
                                                 /*destroy_ends_captures=*/true,
                                                 &Make,
                                                 &Fits,
                                                 &Begin,
                                                 &End,
                                                 &Destroy};

 private:
  static constexpr cufftHandle kNone = -1;

  explicit LibraryHandle(const Layout& layout) : layout_(layout) {}

  static const Cufft& Of(const void* library) { return *static_cast<const Cufft*>(library); }

  absl::Status Plan(const Cufft& cufft, const ContextRef& context) {
    const cufftResult off = cufft.SetAutoAllocation(plan_, 0);
    const absl::Status planned = ToStatus(off == CUFFT_SUCCESS ? MakePlan(cufft) : off,
                                          "make a cuFFT plan", layout_.ToString());
    if (!planned.ok()) return planned;
    // cuFFT makes a plan in stream 0, for which a non-blocking stream does not wait: used at once,
    // by 16 threads in 4 contexts, plans failed now and then with CUDA_ERROR_ILLEGAL_ADDRESS, which
    // loses the process's contexts; after this never (the H100's report in test/hardware/reports/).
    return StreamRef::Borrow(CU_STREAM_LEGACY, context).Synchronize();
  }

  cufftResult MakePlan(const Cufft& cufft) {
    Layout layout = layout_;  // cuFFT takes it as not const
    const bool is_contiguous = layout.input.stride == 0;
    return cufft.MakePlanMany64(
        plan_, layout.rank, layout.sizes, is_contiguous ? nullptr : layout.input.embed,
        layout.input.stride, layout.input.distance, is_contiguous ? nullptr : layout.output.embed,
        layout.output.stride, layout.output.distance, layout.type, layout.batch, &work_bytes_);
  }

  Layout layout_;
  cufftHandle plan_ = kNone;
  std::size_t work_bytes_ = 0;
  internal::FftArea area_;
};

}  // namespace impl

inline absl::StatusOr<std::size_t> CufftPlans::WorkBytes(const ContextRef& context,
                                                         const Layout& layout, Location where) {
  const auto pool = pools().Prepare(context, &layout, 1, where);
  if (!pool.ok()) return pool.status();
  return impl::LibraryHandle<impl::Cufft>::WorkBytes((*pool)->Any(&layout));
}

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_LIBRARIES_CUFFT_H_
