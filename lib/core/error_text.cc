// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text of an Error: "doing, subject: what was said". Apart from error.cc, so that who asks for
// no text does not have it.

#include <cstdint>

#include "cuguest/error.h"
#include "cuguest/internal/stream_kind.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using Reason = Error::Reason;
using Subject = Error::Subject;

// What does not fit is counted. Out of line, since there are so many words below.
class Text {
 public:
  Text(char* text, std::size_t size) : text_(text), size_(size) {}
  ~Text() {
    if (size_ > 0) text_[length_ < size_ ? length_ : size_ - 1] = '\0';
  }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  [[gnu::noinline]] Text& operator<<(const char* words) {
    while (*words != '\0') AddByte(*words++);
    return *this;
  }
  Text& operator<<(unsigned long long number) { return AddDigits(number, 10); }
  [[gnu::noinline]] Text& operator<<(int number) {
    if (number >= 0) return AddDigits(static_cast<unsigned>(number), 10);
    return (*this << "-").AddDigits(0ULL - static_cast<unsigned long long>(number), 10);
  }
  Text& AddAddress(unsigned long long address) { return (*this << "0x").AddDigits(address, 16); }

  std::size_t length() const { return length_; }

 private:
  void AddByte(char byte) {
    if (length_ < size_) text_[length_] = byte;
    ++length_;
  }
  [[gnu::noinline]] Text& AddDigits(unsigned long long number, unsigned base) {
    if (number >= base) AddDigits(number / base, base);
    AddByte("0123456789abcdef"[number % base]);
    return *this;
  }

  char* text_;
  std::size_t size_;
  std::size_t length_ = 0;
};

void AddStream(CUstream stream, Text* text) {
  *text << "stream ";
  if (stream == nullptr) {
    *text << "0";
  } else if (stream == CU_STREAM_LEGACY) {
    *text << "CU_STREAM_LEGACY";
  } else if (stream == CU_STREAM_PER_THREAD) {
    *text << "CU_STREAM_PER_THREAD";
  } else {
    text->AddAddress(reinterpret_cast<std::uintptr_t>(stream));
  }
  if (internal::MeansCurrent(stream)) *text << ", which means the current one";
}

void AddCreation(const Error& error, Text* text) {
  (*text << "device " << error.device << ", flags ").AddAddress(error.handle);
  if (error.bytes != 0 || error.reason == Reason::kNoSms)
    *text << ", with an execution affinity of " << error.bytes << " SMs";
  if (error.cig_type != 0) {
    *text << ", for CUDA in Graphics with data of type " << error.cig_type - 1;
  }
  if (error.code == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY) {
    *text << ", which only a client of an MPS server can have, on compute capability 7.0 or newer, "
             "and of no more SMs than the device has: start nvidia-cuda-mps-control, ask for fewer "
             "SMs, or use a GreenContext";
  }
  if (error.code == CUDA_ERROR_NOT_SUPPORTED) {
    *text << ": ask cuDeviceGetAttribute for CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED or "
             "CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED first";
  }
}

void AddSubject(const Error& error, Text* text) {
  switch (error.subject) {
    case Subject::kNothing:
      return;
    case Subject::kAdvice:
      *text << reinterpret_cast<const char*>(static_cast<std::uintptr_t>(error.handle));
      return;
    case Subject::kContext:
      (*text << "context ").AddAddress(error.handle);
      return;
    case Subject::kPrimary:
      *text << "the primary context of device " << error.device;
      return;
    case Subject::kDevice:
      *text << "device " << error.device;
      return;
    case Subject::kDeviceOfMemory:
      (*text << "pointer ").AddAddress(error.handle)
          << ", which is memory of device " << error.device << " that no context owns";
      return;
    case Subject::kStream:  // Round trip: Failure() has the number from a stream
      return AddStream(reinterpret_cast<CUstream>(static_cast<std::uintptr_t>(error.handle)), text);
    case Subject::kPointer:
      (*text << "pointer ").AddAddress(error.handle);
      return;
    case Subject::kRange:
      (*text << error.bytes << " bytes at ").AddAddress(error.handle);
      return;
    case Subject::kOwner:
      (*text << "memory of context ").AddAddress(error.handle);
      return;
    case Subject::kCreation:
      return AddCreation(error, text);
  }
}

void AddCurrent(const Error& error, Text* text) {
  if (error.current == nullptr) {
    *text << "no context is current";
    return;
  }
  (*text << "the current one, context ").AddAddress(reinterpret_cast<std::uintptr_t>(error.current))
      << ", is on device " << error.current_device;
}

// Of those that say nothing of numbers.
const char* WordsOf(Reason reason) {
  switch (reason) {
    case Reason::kTooOld:
      return "the driver does not give a function that this needs";
    case Reason::kEmpty:
      return "it is null or empty";
    case Reason::kNoContext:
      return "there is no context at this address";
    case Reason::kClosing:
      return "its last holder is destroying it. Keep a SharedContext of your own for as long as "
             "the context is needed";
    case Reason::kNoMemory:
      return "the host has no memory for it";
    case Reason::kNobodyHolds:
      return "nobody holds it, and it was not created";
    case Reason::kBothOptions:
      return "a context can have one of the two, not both";
    case Reason::kBeingMade:
      return "it is already being made, by this thread or by one that waits for it";
    case Reason::kNoSms:
      return "a context needs at least one SM";
    case Reason::kNoData:
      return "the data is null";
    case Reason::kUnknownMemory:
      return "it is not memory that CUDA knows (plain host memory, or freed)";
    default:
      return "";
  }
}

void AddReason(const Error& error, Text* text) {
  switch (error.reason) {
    case Reason::kDestroyed:
      *text << "it was destroyed or reset while it was attached: ";
      [[fallthrough]];
    case Reason::kDriver:
    case Reason::kNoDriver:
    case Reason::kNotInitialized:
    case Reason::kNoDevice:
      *text << ErrorName(error.code) << " (" << static_cast<int>(error.code)
            << "): " << ErrorText(error.code);
      return;
    case Reason::kNoRange:
      *text << (error.bytes == 0 ? "there is nothing to look at" : "more than there are addresses");
      return;
    case Reason::kOutside:
      (*text << "only " << error.found_at + error.found_bytes - error.handle
             << " of them lie in the allocation there, which is " << error.found_bytes
             << " bytes at ")
          .AddAddress(error.found_at);
      return;
    case Reason::kOtherDevice:
      return AddCurrent(error, text);
    case Reason::kInactive:
      AddCurrent(error, text);
      *text << "; the primary context of device " << error.device
            << " is not active, and creating it was not asked for. Make a context of device "
            << error.device << " current, or ask with IfInactive::kCreate";
      return;
    default:
      *text << WordsOf(error.reason);
  }
}

}  // namespace

[[gnu::cold]] std::size_t Error::Write(char* text, std::size_t size) const noexcept {
  Text written(text, size);
  if (ok()) return 0;
  written << doing;
  if (written.length() > 0 && subject != Subject::kNothing) written << ", ";
  AddSubject(*this, &written);
  if (written.length() > 0) written << ": ";
  AddReason(*this, &written);
  return written.length();
}

CUGUEST_END_NAMESPACE
