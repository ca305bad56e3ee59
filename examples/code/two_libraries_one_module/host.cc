// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Can two libraries use one module in one context at the same time?
//
// The programming guide: names belong to their module, "so that modules written by independent
// third parties may interoperate in the same CUDA context". This program is the host, with one
// context. It loads two libraries, red and blue, with dlopen(RTLD_LOCAL). Each (library.cc) embeds
// a static, hidden copy of cuguest and a copy of the same image, with the same kernels and the same
// variable. They work at the same time, on streams of the host. Neither sees the other's variable,
// and each keeps its kernel when the other unloads.

#include <dlfcn.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "examples/code/two_libraries_one_module/library.h"
#include "examples/support/stage.h"

namespace host {

using support::PrintRow;
using Votes = std::vector<unsigned>;

constexpr std::size_t kSize = 1000;
constexpr unsigned kRounds = 50;

absl::Status ToStatus(const char* error) {
  return error == nullptr ? absl::OkStatus() : absl::InternalError(error);
}

// A library, with a stream and votes of the host's.
struct Party {
  [[nodiscard]] static absl::StatusOr<Party> Load(const std::string& color,
                                                  const cuguest::ContextRef& context) {
    Party party;
    const std::string file = "two_libraries_one_module_" + color + ".so";
    party.handle = dlopen(support::Beside(file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (party.handle == nullptr) return absl::NotFoundError(dlerror());
    const auto get = reinterpret_cast<GetLibraryFunction>(dlsym(party.handle, LIBRARY_ENTRY));
    if (get == nullptr) return absl::NotFoundError(file + " has no " LIBRARY_ENTRY);
    party.library = get();
    CUGUEST_ASSIGN_OR_RETURN(party.stream, cuguest::Stream::Create(context));
    CUGUEST_ASSIGN_OR_RETURN(party.votes,
                             cuguest::DeviceBuffer<unsigned>::CopyOf(context, Votes(kSize)));
    CUGUEST_RETURN_IF_ERROR(ToStatus(party.library->load()));
    return party;
  }

  [[nodiscard]] bool Count(unsigned value) const {
    return CHECK_OK(ToStatus(library->count(votes.get(), kSize, value, stream.get())));
  }
  [[nodiscard]] Votes Read() const {
    const absl::StatusOr<Votes> read = cuguest::Download(votes.view(), stream);
    return CHECK_OK(read.status()) ? *read : Votes();
  }
  void SetMark(unsigned mark) const { CHECK_OK(ToStatus(library->set_mark(mark, stream.get()))); }
  [[nodiscard]] unsigned GetMark() const {
    unsigned mark = 0;
    CHECK_OK(ToStatus(library->get_mark(&mark, stream.get())));
    return mark;
  }

  // Waits for its work, and unloads its code and the library.
  void Unload() const {
    CHECK_OK(stream.ref().Synchronize());
    CHECK_OK(ToStatus(library->unload()));
    CHECK(dlclose(handle) == 0);
  }

  void* handle = nullptr;
  const Library* library = nullptr;
  cuguest::Stream stream;
  cuguest::DeviceBuffer<unsigned> votes;
};

void AtTheSameTime(const Party& red, const Party& blue) {
  const auto count_often = [](const Party& party, unsigned value) {
    for (unsigned round = 0; round < kRounds; ++round) CHECK(party.Count(value));
  };
  std::thread other([&] { count_often(blue, 10); });
  count_often(red, 1);
  other.join();
  CHECK(red.Read() == Votes(kSize, kRounds * 1));
  CHECK(blue.Read() == Votes(kSize, kRounds * 10));
  PrintRow("at the same time", "right", "on a thread and a stream each");
}

void EachItsVariable(const Party& red, const Party& blue) {
  red.SetMark(1);
  blue.SetMark(2);
  CHECK(red.GetMark() == 1 && blue.GetMark() == 2);
  PrintRow("the same variable", "right", "once for each");
}

void OneIsUnloaded(const Party& red, const Party& blue) {
  std::atomic<bool> gone{false};
  unsigned rounds = kRounds;
  std::thread work([&] {
    while (!gone && red.Count(1)) ++rounds;
    for (unsigned more = 0; more < kRounds && red.Count(1); ++more) ++rounds;
  });
  blue.Unload();
  gone = true;
  work.join();
  CHECK(red.Read() == Votes(kSize, rounds));
  CHECK(red.GetMark() == 1);
  PrintRow("blue is unloaded", "right", "every vote of red's is counted");
}

absl::Status Demonstrate(const cuguest::ObjectDriver&, cuguest::Device device) {
  const support::Undisturbed undisturbed;
  CUGUEST_ASSIGN_OR_RETURN(const auto context, cuguest::SharedContext::Create(device));
  CUGUEST_ASSIGN_OR_RETURN(const Party red, Party::Load("red", context));
  CUGUEST_ASSIGN_OR_RETURN(const Party blue, Party::Load("blue", context));
  AtTheSameTime(red, blue);
  EachItsVariable(red, blue);
  OneIsUnloaded(red, blue);
  red.Unload();
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("Can two libraries use one module in one context at the same time?",
                             &host::Demonstrate);
}
