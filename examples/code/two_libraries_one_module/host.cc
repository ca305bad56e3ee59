// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Can two libraries use one module in one context at the same time?
//
// The programming guide: names belong to their module, "so that modules written by independent
// third parties may interoperate in the same CUDA context". This program is the host, with one
// context. It loads two libraries, red and blue, with dlopen(RTLD_LOCAL). Each embeds a static,
// hidden copy of cuguest and a copy of the same image, with the same kernels and the same variable.
// They work at the same time, on streams of the host. Neither sees the other's variable, and each
// keeps its kernel when the other unloads.
//
//   1. Red and blue count at the same time
//
//      red's votes                   50 x 1          on its own thread and stream
//      blue's votes                  50 x 10         the same kernel, at the same time
//
//   2. The same variable, once for each
//   3. Blue is unloaded while red works

#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/driver.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/code/two_libraries_one_module/library.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/picture.h"

namespace host {

using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::SharedContext;
using cuguest::Stream;
using cuguest::testing::UndisturbedScope;
using support::PrintRow;
using support::PrintScene;
using Votes = std::vector<unsigned>;

constexpr std::size_t kSize = 1000;
constexpr unsigned kRounds = 50;

bool Succeeds(const char* error) {
  return CHECK_OK(error == nullptr ? absl::OkStatus() : absl::InternalError(error));
}

// A library, with a stream and votes of the host's.
class Party {
 public:
  [[nodiscard]] static absl::StatusOr<Party> Load(const std::string& color,
                                                  const ContextRef& context) {
    const std::string file = "two_libraries_one_module_" + color + ".so";
    void* const handle = dlopen(support::Beside(file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return absl::NotFoundError(dlerror());
    const auto get = reinterpret_cast<GetLibraryFunction>(dlsym(handle, LIBRARY_ENTRY));
    if (get == nullptr) return absl::NotFoundError(file + " has no " LIBRARY_ENTRY);
    absl::StatusOr<Stream> stream = Stream::Create(context);
    CUGUEST_RETURN_IF_ERROR(stream);
    absl::StatusOr<DeviceBuffer<unsigned>> votes =
        DeviceBuffer<unsigned>::CopyOf(context, Votes(kSize));
    CUGUEST_RETURN_IF_ERROR(votes);
    if (const char* error = get()->load()) return absl::InternalError(error);
    return Party(handle, get(), *std::move(stream), *std::move(votes));
  }

  [[nodiscard]] bool Count(unsigned value) const {
    return Succeeds(library_->count(votes_.get(), kSize, value, stream_.get()));
  }
  [[nodiscard]] Votes Read() const {
    CHECK_OK(stream_.ref().Synchronize());
    const absl::StatusOr<Votes> votes = cuguest::Download(votes_.view());
    return CHECK_OK(votes.status()) ? *votes : Votes();
  }
  void SetMark(unsigned mark) const { Succeeds(library_->set_mark(mark, stream_.get())); }
  [[nodiscard]] unsigned GetMark() const {
    unsigned mark = 0;
    Succeeds(library_->get_mark(&mark, stream_.get()));
    return mark;
  }

  // Waits for its work, and unloads its code and the library.
  void Unload() {
    CHECK_OK(stream_.ref().Synchronize());
    Succeeds(library_->unload());
    CHECK(dlclose(std::exchange(handle_, nullptr)) == 0);
  }

 private:
  Party(void* handle, const Library* library, Stream stream, DeviceBuffer<unsigned> votes)
      : handle_(handle), library_(library), stream_(std::move(stream)), votes_(std::move(votes)) {}

  void* handle_;
  const Library* library_;
  Stream stream_;
  DeviceBuffer<unsigned> votes_;
};

void CountOften(const Party& party, unsigned value) {
  for (unsigned round = 0; round < kRounds && party.Count(value); ++round) {
  }
}

void AtTheSameTime(const Party& red, const Party& blue) {
  PrintScene("Red and blue count at the same time");
  std::thread other([&blue] { CountOften(blue, 10); });
  CountOften(red, 1);
  other.join();
  CHECK(red.Read() == Votes(kSize, kRounds * 1));
  CHECK(blue.Read() == Votes(kSize, kRounds * 10));
  PrintRow("red's votes", std::to_string(kRounds) + " x 1", "on its own thread and stream");
  PrintRow("blue's votes", std::to_string(kRounds) + " x 10", "the same kernel, at the same time");
}

void EachItsVariable(const Party& red, const Party& blue) {
  PrintScene("The same variable, once for each");
  red.SetMark(1);
  blue.SetMark(2);
  PrintRow("red's launch_mark", std::to_string(red.GetMark()));
  PrintRow("blue's launch_mark", std::to_string(blue.GetMark()));
  CHECK(red.GetMark() == 1 && blue.GetMark() == 2);
}

void OneIsUnloaded(const Party& red, Party* blue) {
  PrintScene("Blue is unloaded while red works");
  std::atomic<bool> gone{false};
  unsigned rounds = 0;
  std::thread work([&] {
    while (!gone && red.Count(1)) ++rounds;
    for (unsigned more = 0; more < kRounds && red.Count(1); ++more) ++rounds;
  });
  blue->Unload();
  gone = true;
  work.join();
  CHECK(red.Read() == Votes(kSize, kRounds + rounds));
  CHECK(red.GetMark() == 1);
  PrintRow("blue", "unloaded", "its code, and the library itself");
  PrintRow("red", "right", "every vote is counted");
}

absl::Status Demonstrate(const cuguest::Driver&, cuguest::Device device) {
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  CUGUEST_ASSIGN_OR_RETURN(const SharedContext context, SharedContext::Create(device));
  CUGUEST_ASSIGN_OR_RETURN(Party red, Party::Load("red", context.context()));
  CUGUEST_ASSIGN_OR_RETURN(Party blue, Party::Load("blue", context.context()));
  AtTheSameTime(red, blue);
  EachItsVariable(red, blue);
  OneIsUnloaded(red, &blue);
  red.Unload();
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("Can two libraries use one module in one context at the same time?",
                             &host::Demonstrate);
}
