// SPDX-License-Identifier: Apache-2.0

#include "cuguest/internal/cufft.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/capture.h"
#include "lib/core/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

namespace {

constexpr int kMaxRank = 3;

struct Type {
  int value;  // a cufftType
  const char* name;
  long long input_bytes;  // of an element
  long long output_bytes;
  bool input_is_half;  // complex, of a real transform
  bool output_is_half;
};

constexpr Type kTypes[] = {
    {0x29, "C2C", 8, 8, false, false}, {0x2a, "R2C", 4, 8, false, true},
    {0x2c, "C2R", 8, 4, true, false},  {0x69, "Z2Z", 16, 16, false, false},
    {0x6a, "D2Z", 8, 16, false, true}, {0x6c, "Z2D", 16, 8, true, false},
};

const Type* Find(int value) noexcept {
  const auto* end = std::end(kTypes);
  const auto* found =
      std::find_if(std::begin(kTypes), end, [&](const Type& type) { return type.value == value; });
  return found == end ? nullptr : found;
}

// A number of elements or bytes, or too many.
class Amount {
 public:
  Amount(long long value) : value_(value) {}  // NOLINT: as a number is
  friend Amount operator+(Amount a, const Amount& b) {
    const bool over = __builtin_add_overflow(a.value_, b.value_, &a.value_);
    a.fits_ = a.fits_ && b.fits_ && !over;
    return a;
  }
  friend Amount operator*(Amount a, const Amount& b) {
    const bool over = __builtin_mul_overflow(a.value_, b.value_, &a.value_);
    a.fits_ = a.fits_ && b.fits_ && !over;
    return a;
  }
  bool fits() const { return fits_; }
  long long value() const { return value_; }

 private:
  long long value_;
  bool fits_ = true;
};

// One side, with all that a contiguous one leaves out.
struct Extent {
  long long sizes[kMaxRank];
  long long embed[kMaxRank];
  long long stride;
  Amount distance;
};

Extent ExtentOf(const FftShape& shape, const FftSide& side, bool is_half) {
  Extent extent{{}, {}, side.stride, side.distance};
  for (int i = 0; i < shape.rank; ++i) {
    extent.sizes[i] = is_half && i == shape.rank - 1 ? shape.sizes[i] / 2 + 1 : shape.sizes[i];
    extent.embed[i] = side.stride == 0 ? extent.sizes[i] : side.embed[i];
  }
  if (side.stride != 0) return extent;
  extent.stride = 1;
  extent.distance = 1;
  for (int i = 0; i < shape.rank; ++i) extent.distance = extent.distance * extent.sizes[i];
  return extent;
}

// From the first element to the end of the last one.
Amount BytesOf(const FftShape& shape, const Extent& extent, long long element) {
  Amount last = 0;
  for (int i = 0; i < shape.rank; ++i) last = last * extent.embed[i] + (extent.sizes[i] - 1);
  last = last * extent.stride + extent.distance * (shape.batch - 1);
  return (last + 1) * element;
}

absl::Status Refuse(const FftShape& shape, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("describe the transform ", FftLayoutText(shape), ": ", why));
}

absl::Status CheckEmbedding(const FftShape& shape, const Extent& extent, const FftSide& side,
                            const char* name) {
  if (side.stride == 0) return absl::OkStatus();
  if (side.stride < 0 || side.distance < 0 || (side.distance == 0 && shape.batch > 1)) {
    return Refuse(shape,
                  absl::StrCat("the ", name, "'s stride is ", side.stride, " and its distance ",
                               side.distance, "; both must be positive"));
  }
  for (int i = 1; i < shape.rank; ++i) {
    if (side.embed[i] >= extent.sizes[i]) continue;
    return Refuse(shape, absl::StrCat("dimension ", i, " of the ", name, " has ", extent.sizes[i],
                                      " elements, and is embedded in ", side.embed[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::size_t> BytesOfSide(const FftShape& shape, const Type& type, bool of_input) {
  const FftSide& side = of_input ? shape.input : shape.output;
  const char* const name = of_input ? "input" : "output";
  const Extent extent = ExtentOf(shape, side, of_input ? type.input_is_half : type.output_is_half);
  CUGUEST_RETURN_IF_ERROR(CheckEmbedding(shape, extent, side, name));
  const Amount bytes = BytesOf(shape, extent, of_input ? type.input_bytes : type.output_bytes);
  if (bytes.fits()) return static_cast<std::size_t>(bytes.value());
  return Refuse(shape, absl::StrCat("the ", name, " has more bytes than an address space"));
}

// What has to be right before anything is computed.
absl::Status CheckNumbers(const FftShape& shape) {
  if (shape.rank < 1 || shape.rank > kMaxRank) {
    return Refuse(shape, absl::StrCat("the rank is ", shape.rank, ", and 1 to 3 are possible"));
  }
  if (Find(shape.type) == nullptr) {
    return Refuse(shape, absl::StrCat(shape.type, " is no cufftType"));
  }
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.sizes[i] < 1) return Refuse(shape, "a size is not positive");
  }
  if (shape.batch < 1) return Refuse(shape, "the batch is not positive");
  if ((shape.input.stride == 0) != (shape.output.stride == 0)) {
    return Refuse(shape, "one side has a stride and the other none; cuFFT would ignore it");
  }
  return absl::OkStatus();
}

absl::Status CheckNotCapturing(const StreamRef& stream, std::size_t bytes, const FftShape& shape) {
  if (stream.capture_state() == CaptureState::kNone) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "use the work area of a cuFFT plan, ", FftLayoutText(shape),
      ": the stream captures, and the graph would keep its address: give the scope a work area of ",
      bytes, " bytes that lives as long as the graph"));
}

}  // namespace

absl::Status CheckFftLayout(const FftShape& shape) {
  const absl::Status status = FftBytes(shape, /*of_input=*/true).status();
  return status.ok() ? FftBytes(shape, /*of_input=*/false).status() : status;
}

absl::StatusOr<std::size_t> FftBytes(const FftShape& shape, bool of_input) {
  CUGUEST_RETURN_IF_ERROR(CheckNumbers(shape));
  return BytesOfSide(shape, *Find(shape.type), of_input);
}

std::string FftLayoutText(const FftShape& shape) {
  const Type* const type = Find(shape.type);
  std::string text = absl::StrCat(shape.batch, " x ");
  for (int i = 0; i < std::min(shape.rank, kMaxRank); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "x", shape.sizes[i]);
  }
  absl::StrAppend(&text, " ", type == nullptr ? "of an unknown type" : type->name);
  if (shape.input.stride != 0) absl::StrAppend(&text, ", embedded");
  return text;
}

absl::StatusOr<CUdeviceptr> FftArea::Begin(const HandleRequest& request, std::size_t bytes,
                                           const FftShape& shape) {
  const MemoryRange* const brought = request.work_area;
  if (brought != nullptr && brought->bytes >= bytes) return brought->pointer;
  if (brought != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("set the work area of a cuFFT plan, ", FftLayoutText(shape), ": it has ",
                     brought->bytes, " bytes, and the plan needs ", bytes));
  }
  CUGUEST_RETURN_IF_ERROR(CheckNotCapturing(request.stream, bytes, shape));
  CUGUEST_RETURN_IF_ERROR(area_.empty() ? Make(request.stream.context(), bytes)
                                        : request.stream.WaitFor(used_));
  user_ = request.stream;
  return area_.get();
}

bool FftArea::End(absl::Status* why, std::size_t bytes, const FftShape& shape) {
  if (!user_.has_value()) return true;
  const StreamRef user = *std::exchange(user_, std::nullopt);
  // An event that is recorded in a capture would draw the next user into it. Without a text, which
  // needs memory, for a destructor.
  if (why == nullptr) {
    return user.capture_state() == CaptureState::kNone &&
           used_.TryRecord(user).code == CUDA_SUCCESS;
  }
  *why = CheckNotCapturing(user, bytes, shape);
  if (why->ok()) *why = used_.Record(user);
  return why->ok();
}

void FftArea::Leak() noexcept {
  static_cast<void>(area_.Leak());
  static_cast<void>(used_.Leak());
}

absl::Status FftArea::Make(const ContextRef& context, std::size_t bytes) {
  CUGUEST_ASSIGN_OR_RETURN(Event used, Event::Create(context));
  CUGUEST_ASSIGN_OR_RETURN(area_, DeviceBuffer<std::byte>::Allocate(context, bytes));
  used_ = std::move(used);
  return absl::OkStatus();
}

}  // namespace internal
CUGUEST_END_NAMESPACE
