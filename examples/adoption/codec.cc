// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What does a codec gain that is handed a context?
//
// The codec decodes into memory of the context F that it is handed, and calls the application with
// each frame. The application's thread works in A. The codec is written twice: with a push and a
// pop, as such libraries do it, and with cuguest. docs/adoption/codec.md walks through both.
// (A codec in C: examples/guest/picture_filter_in_c.c.)
//
//   1. A frame
//
//      before the call               [A]<
//      push, pop: in the callback    [A] [F]<       the codec's context
//      push, pop: afterwards         [A]<           as it was
//      cuguest: in the callback      [A]<           as it was
//      cuguest: afterwards           [A]<           as it was
//
//   2. A frame that is too large
//
//      push, pop: afterwards         [A] [F]<       WRONG CONTEXT
//      cuguest: afterwards           [A]<           as it was
//   ...

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/driver.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

using cuguest::Device;
using cuguest::Driver;

// A compressed frame: as many bytes as it says, all of one value.
struct Packet {
  std::size_t bytes;
  unsigned char value;
};
using OnFrame = std::function<void(CUdeviceptr frame, std::size_t bytes)>;

// With a push and a pop. `cuda.Name` is the driver's cuName.
namespace before {

class Decoder {
 public:
  Decoder(const Driver& cuda, CUcontext context) : cuda_(cuda), context_(context) {}

  CUresult Decode(const Packet& packet, const OnFrame& on_frame) {
    CUresult code = cuda_.CtxPushCurrent(context_);
    if (code != CUDA_SUCCESS) return code;
    CUdeviceptr frame = 0;
    code = cuda_.MemAlloc(&frame, packet.bytes);
    if (code != CUDA_SUCCESS) return code;  // and the push stays
    code = cuda_.MemsetD8(frame, packet.value, packet.bytes);
    if (code == CUDA_SUCCESS) on_frame(frame, packet.bytes);
    cuda_.MemFree(frame);
    CUcontext popped = nullptr;
    cuda_.CtxPopCurrent(&popped);  // whatever it is
    return code;
  }

 private:
  const Driver& cuda_;
  CUcontext context_;
};

}  // namespace before

// With cuguest.
namespace after {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::HostScope;

class Decoder {
 public:
  // `context` is alive now; what becomes of it is noticed.
  explicit Decoder(CUcontext context) : context_(ContextRef::Borrow(context)) {}

  absl::Status Decode(const Packet& packet, const OnFrame& on_frame) {
    ContextGuard guard(context_);
    CUGUEST_RETURN_IF_ERROR(guard);
    CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<unsigned char> frame,
                             DeviceBuffer<unsigned char>::Allocate(context_, packet.bytes));
    CUGUEST_RETURN_IF_ERROR(cuguest::Fill(frame.view(), packet.value));
    {
      const HostScope host(guard);
      CUGUEST_RETURN_IF_ERROR(host);
      on_frame(frame.get(), packet.bytes);
    }
    return cuguest::ToStatus(guard);
  }

 private:
  ContextRef context_;
};

}  // namespace after

// An application that works in A, and has made F for the codec.
namespace host {

using cuguest::testing::UndisturbedScope;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;

constexpr char kOwn[] = "[A]<";
constexpr Packet kFrame = {4096, 42};
constexpr Packet kTooLarge = {std::size_t{1} << 60, 42};

struct House {
  const Driver& driver;
  Device device;
  CUcontext a;
  CUcontext f;
  const Cast& cast;
  HostStack& stack;
};

// Prints the stack, and returns whether it is the application's own.
bool Show(const House& house, const char* when) {
  const std::string stack = house.cast.Draw();
  PrintRow(when, stack, stack == kOwn ? "as it was" : "WRONG CONTEXT");
  return stack == kOwn;
}

CUresult CallBefore(const House& house, const Packet& packet, const OnFrame& on_frame) {
  house.stack.Set({house.a});
  return before::Decoder(house.driver, house.f).Decode(packet, on_frame);
}

absl::Status CallAfter(const House& house, const Packet& packet, const OnFrame& on_frame) {
  house.stack.Set({house.a});
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  return after::Decoder(house.f).Decode(packet, on_frame);
}

void Frame(const House& house) {
  PrintScene("A frame");
  house.stack.Set({house.a});
  PrintRow("before the call", house.cast.Draw());
  CHECK(CallBefore(house, kFrame, [&](CUdeviceptr, std::size_t) {
          CHECK(!Show(house, "push, pop: in the callback"));
        }) == CUDA_SUCCESS);
  CHECK(Show(house, "push, pop: afterwards"));
  CHECK_OK(CallAfter(house, kFrame, [&](CUdeviceptr frame, std::size_t bytes) {
    CHECK(Show(house, "cuguest: in the callback"));
    CHECK(frame != 0 && bytes == kFrame.bytes);
  }));
  CHECK(Show(house, "cuguest: afterwards"));
}

void FrameThatIsTooLarge(const House& house) {
  PrintScene("A frame that is too large");
  CHECK(CallBefore(house, kTooLarge, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(!Show(house, "push, pop: afterwards"));
  const absl::Status refused = CallAfter(house, kTooLarge, nullptr);
  CHECK(Show(house, "cuguest: afterwards"));
  CHECK(refused.code() == absl::StatusCode::kResourceExhausted);
  support::PrintParagraph(std::string(refused.message()));
}

// The application's callback works in F, as it was told, and forgets to pop it.
void CallbackThatLeavesAPush(const House& house) {
  PrintScene("The application's callback pushes A, and forgets to pop it");
  const OnFrame forget = [&](CUdeviceptr, std::size_t) {
    CHECK(house.driver.CtxPushCurrent(house.a) == CUDA_SUCCESS);
  };
  CHECK(CallBefore(house, kFrame, forget) == CUDA_SUCCESS);
  CHECK(!Show(house, "push, pop: afterwards"));

  // What the application does to its own stack in a HostScope stays: that push is its own.
  house.stack.Set({house.a});
  CHECK_OK(after::Decoder(house.f).Decode(kFrame, forget));
  const std::string stack = house.cast.Draw();
  PrintRow("cuguest: afterwards", stack, "the application's own push");
  CHECK(stack == "[A] [A]<");
}

absl::Status DestroyedContext(const House& house) {
  PrintScene("The application destroys the context, and decodes once more");
  CUGUEST_ASSIGN_OR_RETURN(HostContext mine, HostContext::Create(house.driver, house.device));
  after::Decoder decoder(mine.get());
  house.stack.Set({house.a});
  CHECK(house.driver.CtxDestroy(mine.get()) == CUDA_SUCCESS);
  mine.Leak();
  PrintRow("push, pop", "(not run)", "pushes a destroyed handle, which is undefined");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const absl::Status refused = decoder.Decode(kFrame, nullptr);
  CHECK(cuguest::CodeOf(refused) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(Show(house, "cuguest: afterwards"));
  support::PrintParagraph(std::string(refused.message()));
  return absl::OkStatus();
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const HostContext f, HostContext::Create(driver, device));
  Cast cast;
  cast.Name("A", a.get());
  cast.Name("F", f.get());
  HostStack stack(driver, {a.get()});
  const House house = {driver, device, a.get(), f.get(), cast, stack};

  Frame(house);
  FrameThatIsTooLarge(house);
  CallbackThatLeavesAPush(house);
  const absl::Status status = DestroyedContext(house);
  CHECK(cuguest::IncidentCount() == 0);  // nobody disturbed the codec
  return status;
}

}  // namespace host

int main() {
  return support::RunExample("What does a codec gain that is handed a context?",
                             &host::Demonstrate);
}
