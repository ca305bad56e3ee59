// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What does a codec gain that is handed a context?
//
// The codec decodes into memory of the context F that it is handed, and calls the application with
// each frame. The application's thread works in A. The codec is written twice: with a push and a
// pop, as such libraries do it, and with cuguest: see docs/adoption/codec.md.

#include <functional>

#include "cuguest/c.h"
#include "cuguest/context_guard.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/status.h"
#include "examples/support/stage.h"

using cuguest::Driver;
using cuguest::ObjectDriver;

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
  Decoder(const ObjectDriver& cuda, CUcontext context) : cuda_(cuda), context_(context) {}

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
  const ObjectDriver& cuda_;
  CUcontext context_;
};

}  // namespace before

// With cuguest.
namespace after {

using Bytes = cuguest::DeviceBuffer<unsigned char>;

class Decoder {
 public:
  // `context` is alive now; what becomes of it is noticed.
  explicit Decoder(CUcontext context) : context_(cuguest::ContextRef::Borrow(context)) {}

  absl::Status Decode(const Packet& packet, const OnFrame& on_frame) {
    cuguest::ContextGuard guard(context_);
    CUGUEST_RETURN_IF_ERROR(guard);
    CUGUEST_ASSIGN_OR_RETURN(Bytes frame, Bytes::Allocate(context_, packet.bytes));
    CUGUEST_RETURN_IF_ERROR(cuguest::Fill(frame.view(), packet.value));
    {
      const cuguest::HostScope host(guard);
      CUGUEST_RETURN_IF_ERROR(host);
      on_frame(frame.get(), packet.bytes);
    }
    return cuguest::ToStatus(guard);
  }

 private:
  cuguest::ContextRef context_;
};

}  // namespace after

// A codec in C that is handed no context and takes the device's primary one.
namespace in_c {

struct Decoder {
  cuguest_primary primary;  // zeros: holds nothing
};

int Open(const ObjectDriver* cuda, Decoder* decoder, int device, int may_create) {
  unsigned flags = 0;
  int active = may_create;
  if (!may_create) cuda->DevicePrimaryCtxGetState(device, &flags, &active);  // creates nothing
  if (!active) return CUDA_ERROR_INVALID_CONTEXT;
  return cuguest_primary_retain(&decoder->primary, device);
}

int Enter(Decoder* decoder, cuguest_guard* guard) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  const int code = cuguest_primary_ref(&decoder->primary, &ref);
  return code == 0 ? cuguest_guard_enter_ref(guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE) : code;
}

int Close(Decoder* decoder) { return cuguest_primary_release(&decoder->primary); }

}  // namespace in_c

// An application that works in A, and has made F for the codec.
namespace host {

using support::PrintScene;

constexpr Packet kFrame = {4096, 42};
constexpr Packet kTooLarge = {std::size_t{1} << 60, 42};

absl::Status Demonstrate(const ObjectDriver& driver, cuguest::Device device) {
  support::Stage stage(driver, device, {"A", "F", "P"});
  before::Decoder old(driver, stage["F"]);
  after::Decoder decoder(stage["F"]);

  PrintScene("A frame");
  stage.Set({"A"});
  SUCCEEDS(old.Decode(kFrame, [&](CUdeviceptr, std::size_t) {
    CHECK(stage.Shows("push, pop: in the callback", "[A] [F]<", "WRONG CONTEXT"));
  }));
  CHECK(stage.Shows("push, pop: afterwards", "[A]<", "as it was"));
  {
    const support::Undisturbed undisturbed;
    CHECK_OK(decoder.Decode(kFrame, [&](CUdeviceptr frame, std::size_t bytes) {
      CHECK(stage.Shows("cuguest: in the callback", "[A]<", "as it was"));
      CHECK(frame != 0 && bytes == kFrame.bytes);
    }));
  }
  CHECK(stage.Shows("cuguest: afterwards", "[A]<", "as it was"));

  PrintScene("A frame that is too large");
  CHECK(old.Decode(kTooLarge, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(stage.Shows("push, pop: afterwards", "[A] [F]<", "WRONG CONTEXT"));
  stage.Set({"A"});
  CHECK(support::IsRefused("cuguest", decoder.Decode(kTooLarge, nullptr),
                           absl::StatusCode::kResourceExhausted));
  CHECK(stage.Shows("cuguest: afterwards", "[A]<", "as it was"));

  PrintScene("The application's callback pushes A, and forgets to pop it");
  const OnFrame forget = [&](CUdeviceptr, std::size_t) {
    SUCCEEDS(driver.CtxPushCurrent(stage["A"]));
  };
  SUCCEEDS(old.Decode(kFrame, forget));
  CHECK(stage.Shows("push, pop: afterwards", "[A] [F]<", "WRONG CONTEXT"));
  stage.Set({"A"});
  CHECK_OK(decoder.Decode(kFrame, forget));
  CHECK(stage.Shows("cuguest: afterwards", "[A] [A]<", "the application's own push"));

  PrintScene("The application destroys the context, and decodes once more");
  stage.Set({"A"});
  stage.Destroy("F");
  support::PrintRow("push, pop", "(not run)", "pushes a destroyed handle: undefined");
  const support::Undisturbed undisturbed;
  CHECK(support::IsRefused("cuguest", decoder.Decode(kFrame, nullptr),
                           absl::StatusCode::kFailedPrecondition,
                           "CUDA_ERROR_CONTEXT_IS_DESTROYED"));
  CHECK(stage.Shows("cuguest: afterwards", "[A]<", "as it was"));
  CHECK(cuguest::IncidentCount() == 0);  // nobody disturbed the codec

  PrintScene("A codec in C takes the device's primary context");
  in_c::Decoder in_c = {};
  CHECK(in_c::Open(&driver, &in_c, device.get(), 0) != 0);
  CHECK(stage.Shows("opened where it is inactive", "[A]<", "P is inactive"));
  CHECK(in_c::Open(&driver, &in_c, device.get(), 1) == 0);
  {
    CUGUEST_SCOPE(cuguest_guard, guard);
    CHECK(in_c::Enter(&in_c, &guard) == 0);
    CHECK(stage.Shows("at work", "[A] [P]<", "P is active"));
  }
  CHECK(in_c::Close(&in_c) == 0);
  CHECK(stage.Shows("closed", "[A]<", "P is inactive"));
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("What does a codec gain that is handed a context?",
                             &host::Demonstrate);
}
