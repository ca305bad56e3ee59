// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/libraries/internal/cufft.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/capture.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
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

constexpr Type kTransformTypes[] = {
    {0x29, "C2C", 8, 8, false, false}, {0x2a, "R2C", 4, 8, false, true},
    {0x2c, "C2R", 8, 4, true, false},  {0x69, "Z2Z", 16, 16, false, false},
    {0x6a, "D2Z", 8, 16, false, true}, {0x6c, "Z2D", 16, 8, true, false},
};

const Type* Find(int value) noexcept {
  for (const Type& type : kTransformTypes) {
    if (type.value == value) return &type;
  }
  return nullptr;
}

// Of numbers of elements or bytes, none of which is negative.
constexpr long long kTooMany = std::numeric_limits<long long>::max();

long long Add(long long a, long long b) { return __builtin_add_overflow(a, b, &a) ? kTooMany : a; }
long long Multiply(long long a, long long b) {
  return __builtin_mul_overflow(a, b, &a) ? kTooMany : a;
}

absl::Status Refuse(const FftShape& shape, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("describe the transform ", FftLayoutText(shape), ": ", why));
}

// From the first element of a side to the end of the last one.
absl::StatusOr<std::size_t> BytesOfSide(const FftShape& shape, const Type& type, bool of_input) {
  const FftSide& side = of_input ? shape.input : shape.output;
  const char* const name = of_input ? "input" : "output";
  const bool is_half = of_input ? type.input_is_half : type.output_is_half;
  const bool is_contiguous = side.stride == 0;
  if (!is_contiguous &&
      (side.stride < 0 || side.distance < 0 || (side.distance == 0 && shape.batch > 1))) {
    return Refuse(shape,
                  absl::StrCat("the ", name, "'s stride is ", side.stride, " and its distance ",
                               side.distance, "; both must be positive"));
  }
  long long last = 0;   // of one transform
  long long count = 1;  // of its elements
  for (int i = 0; i < shape.rank; ++i) {
    const bool is_halved = is_half && i == shape.rank - 1;
    const long long size = is_halved ? shape.sizes[i] / 2 + 1 : shape.sizes[i];
    const long long embed = is_contiguous ? size : side.embed[i];
    if (i > 0 && embed < size) {
      return Refuse(shape, absl::StrCat("dimension ", i, " of the ", name, " has ", size,
                                        " elements, and is embedded in ", embed));
    }
    last = Add(Multiply(last, embed), size - 1);
    count = Multiply(count, size);
  }
  if (!is_contiguous) last = Multiply(last, side.stride);
  last = Add(last, Multiply(is_contiguous ? count : side.distance, shape.batch - 1));
  const long long bytes = Multiply(Add(last, 1), of_input ? type.input_bytes : type.output_bytes);
  if (bytes != kTooMany) return static_cast<std::size_t>(bytes);
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

absl::Status CheckWorkArea(const StreamRef& stream, std::size_t bytes, const FftShape& shape) {
  if (stream.capture_status() == CU_STREAM_CAPTURE_STATUS_NONE) return absl::OkStatus();
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
  CUGUEST_RETURN_IF_ERROR(CheckWorkArea(request.stream, bytes, shape));
  CUGUEST_RETURN_IF_ERROR(area_.empty() ? Make(request.stream.context(), bytes)
                                        : request.stream.WaitFor(used_));
  user_ = request.stream;
  return area_.get();
}

PutBack FftArea::End(absl::Status* why, std::size_t bytes, const FftShape& shape) {
  if (!user_.has_value()) return PutBack::kUnchanged;
  const StreamRef user = *std::exchange(user_, std::nullopt);
  // An event that is recorded in a capture would draw the next user into it. Without a text, which
  // needs memory, for a destructor.
  bool is_recorded = false;
  if (why == nullptr) {
    is_recorded = user.capture_status() == CU_STREAM_CAPTURE_STATUS_NONE &&
                  used_.TryRecord(user).code == CUDA_SUCCESS;
  } else {
    *why = CheckWorkArea(user, bytes, shape);
    if (why->ok()) *why = used_.Record(user);
    is_recorded = why->ok();
  }
  return is_recorded ? PutBack::kChanged : PutBack::kFailed;
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

CUGUEST_END_INTERNAL_NAMESPACE
