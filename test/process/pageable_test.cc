// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plain memory of the host where the devices reach it, as with HMM, and where they do not. Whether
// they do is asked once in a process.

#include <sys/mman.h>

#include <optional>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/kernel.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/memory.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/pinned_pages.h"
#include "cuguest/objects/pitched_view.h"
#include "cuguest/objects/stream.h"
#include "cuguest/primary_context.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Describe;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::DeviceView;
using cuguest::MemoryDescription;
using cuguest::PinnedPages;
using Kind = MemoryDescription::Kind;
using Ints = std::vector<int>;

constexpr size_t kPage = 4096;

// Two pages, and behind them nothing.
char* TwoPages() {
  void* const pages =
      mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED);
  CHECK(munmap(static_cast<char*>(pages) + 2 * kPage, kPage) == 0);
  return static_cast<char*>(pages);
}

Kind KindOf(const void* pointer) {
  const absl::StatusOr<MemoryDescription> memory = Describe(pointer);
  CHECK(memory.ok());
  return memory->kind;
}

void Begin() {
  Sim::SupportPageableAccess(true);
  CHECK(cuguest::Driver::GetInitialized().ok());
}

void DevicesDoNotReachIt() {
  CHECK(cuguest::Driver::GetInitialized().ok());
  char* const pages = TwoPages();
  CHECK(KindOf(pages) == Kind::kUnregistered);
  CHECK(!DeviceView<char>::Borrow(pages, 1).ok());
}

void ItIsDescribed() {
  Begin();
  char* const pages = TwoPages();
  const auto memory = Describe(pages + 10);
  CHECK(memory.ok() && memory->kind == Kind::kPageable);
  CHECK(memory->is_on_host && memory->is_for_all_devices());
  CHECK(memory->context == ContextRef() && memory->device == Device::Borrow(0));
  CHECK(memory->host_address == pages + 10 && memory->device_address == memory->pointer);
  CHECK(memory->access == MemoryDescription::Access::kReadWrite && memory->size == 0);
  CHECK(memory->ToString().find("pageable memory of the host") != std::string::npos);
  CHECK(KindOf(pages + 2 * kPage) == Kind::kUnregistered);
  CHECK(KindOf(nullptr) == Kind::kUnregistered);
  CHECK(KindOf(reinterpret_cast<void*>(0x1000)) == Kind::kUnregistered);
  CHECK(KindOf(reinterpret_cast<void*>(~std::uintptr_t{0})) == Kind::kUnregistered);
  const ContextGuard guard(cuguest_test::MakeContext());
  CHECK(KindOf(pages) == Kind::kPageable);
  auto pinned = PinnedPages::Pin(ContextRef::Current(), pages, kPage);
  CHECK(pinned.ok() && !pinned->was_pinned() && KindOf(pages) == Kind::kPinnedHost);
  const std::uint64_t calls = Sim::TotalCalls();
  CHECK(KindOf(pages + kPage) == Kind::kPageable);
  CHECK(Sim::TotalCalls() == calls + 4);
}

void TheDeviceIsTheCurrentOnes() {
  Begin();
  if (cuguest::PrimaryContext second = cuguest::PrimaryContext::Retain(Device::Borrow(1));
      second.ok()) {
    const ContextGuard guard(second);
    CHECK(Describe(TwoPages())->device == Device::Borrow(1));
  }
}

void AViewHasPages() {
  Begin();
  char* const pages = TwoPages();
  const auto view = DeviceView<char>::Borrow(pages + 1, 2 * kPage - 1);
  CHECK(view.ok() && view->data() == pages + 1 && view->size() == 2 * kPage - 1);
  CHECK(view->context() == ContextRef() && view->device() == Device::Borrow(0));
  const absl::Status beyond = DeviceView<char>::Borrow(pages + 1, 2 * kPage).status();
  CHECK(absl::IsInvalidArgument(beyond));
  CHECK(beyond.ToString().find("not all of its pages are there") != std::string::npos);
  CHECK(!DeviceView<int>::Borrow(reinterpret_cast<int*>(pages + 1), 1).ok());
  CHECK(!cuguest::PitchedView<char>::Borrow(pages, 16, 3, kPage).ok());
  CHECK(cuguest::PitchedView<char>::Borrow(pages, 16, 2, kPage).ok());
}

void ItIsAnOperand() {
  Begin();
  auto* const numbers = reinterpret_cast<int*>(TwoPages());
  const auto view = DeviceView<int>::Borrow(numbers, 4).value();
  CHECK(absl::IsFailedPrecondition(Zero(view)));  // in whose context?
  CHECK(cuguest::AcquireFromBuffer(view, cuguest::IfInactive::kCreate).ok());
  const auto primary = cuguest::PrimaryContext::Retain(Device::Borrow(0));
  auto buffer = DeviceBuffer<int>::CopyOf(primary.context(), Ints{1, 2, 3, 4}).value();
  CHECK(Copy(view, buffer.view()).ok());
  CHECK(numbers[0] == 1 && numbers[3] == 4);
  CHECK(Fill(view, 7).ok());
  CHECK(Copy(buffer.view(), view).ok());
  CHECK(Download(buffer.view()).value() == Ints(4, 7));
  CHECK(Upload(view, Ints{5, 6, 7, 8}).ok());
  CHECK(numbers[1] == 6);
  CHECK(Download(view).value() == (Ints{5, 6, 7, 8}));
  const auto column = cuguest::PitchedView<int>::Borrow(numbers, 1, 2, 8).value();
  Ints read(2);
  CHECK(Download(column, read).ok());
  CHECK(read == (Ints{5, 7}));
  const ContextGuard guard(cuguest_test::MakeContext());
  CHECK(Zero(view).ok());
  CHECK(numbers[3] == 0);
}

constexpr char kPtx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry set(.param .u64 a)\n{\n "
    "ret;\n}\n";

// Of a kernel on any device, whichever was current when the view was made.
void ItIsAParameter() {
  Begin();
  auto* const numbers = reinterpret_cast<int*>(TwoPages());
  const auto view = DeviceView<int>::Borrow(numbers, 4).value();
  Sim::RegisterKernel("set", [](const cudasim::SimLaunch& launch) {
    **static_cast<int* const*>(launch.parameters[0]) = 9;
    return CUDA_SUCCESS;
  });
  const auto code = cuguest::CodeImage::FromPtx(kPtx, "set.ptx");
  const auto module = cuguest::Module::Load(*code);
  CHECK(module.ok());
  const auto kernel = module->GetKernel("set");
  CHECK(kernel.ok());
  for (int device = 0; device < *cuguest::CountDevices(); ++device) {
    numbers[0] = 0;
    const auto primary = cuguest::PrimaryContext::Retain(Device::Borrow(device));
    const auto stream = cuguest::Stream::Create(primary.context()).value();
    CHECK(LaunchForElements(*kernel, 4, stream.ref(), view).ok());
    CHECK(stream.ref().Synchronize().ok());
    CHECK(numbers[0] == 9);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto on_sim = [](const char* name, void (*run)()) {
    return cuguest_test::Scenario{name, run, {}, 0, cuguest_test::On::kSimulation};
  };
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          on_sim("devices_do_not_reach_it", &DevicesDoNotReachIt),
          on_sim("it_is_described", &ItIsDescribed),
          on_sim("the_device_is_the_current_ones", &TheDeviceIsTheCurrentOnes),
          on_sim("a_view_has_pages", &AViewHasPages),
          on_sim("it_is_an_operand", &ItIsAnOperand),
          on_sim("it_is_a_parameter", &ItIsAParameter),
      });
}
