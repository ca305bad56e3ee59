// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How are the tenants of one device kept apart?
//
// A server works for several users at once, each in a context of its own: what one of them
// allocates, loads and sets belongs to its context, and is destroyed with it. The contexts are
// current only while work is submitted to them. The code is loaded once: a Module is valid in every
// context, and has its variables once in each.
//
//   1. Three tenants, one module
//
//      ada                           mark 1          its own variable and memory
//      bob                           mark 2          its own variable and memory
//   ...
//   3. One of them leaves
//
//      bob's context                 destroyed       with everything in it
//      bob's next launch             refused
//        ...
//      ada                           right           its own variable and memory
//
// Contexts do not protect from a kernel with an illegal address: it destroys every context of the
// process on that device (CUDA Driver API, CUDA_ERROR_ILLEGAL_ADDRESS). A server that does not
// trust its kernels needs one process for each tenant.

#include <cuda.h>

#include <memory>
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
#include "cuguest/device_ptr.h"
#include "cuguest/device_view.h"
#include "cuguest/driver.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/memory.h"
#include "cuguest/module.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/launch.h"

namespace server {

using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::DeviceView;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::SharedContext;
using cuguest::Stream;
using Counts = std::vector<unsigned>;

// The code of all tenants: kernels, and a variable that marks a tenant's context.
struct Code {
  Module module;
  Kernel count_up;
  Kernel get_mark;
};

absl::StatusOr<Code> LoadCode() {
  absl::StatusOr<Module> module =
      Module::Load({cuguest_kernels::launch_fatbin, cuguest_kernels::launch_fatbin_size}, "launch");
  CUGUEST_RETURN_IF_ERROR(module);
  absl::StatusOr<Kernel> count_up = module->GetKernel("count_up");
  CUGUEST_RETURN_IF_ERROR(count_up);
  absl::StatusOr<Kernel> get_mark = module->GetKernel("get_mark");
  CUGUEST_RETURN_IF_ERROR(get_mark);
  return Code{*std::move(module), *std::move(count_up), *std::move(get_mark)};
}

// Work for one user.
class Tenant {
 public:
  [[nodiscard]] static absl::StatusOr<Tenant> Admit(cuguest::Device device, const Code& code,
                                                    unsigned mark);

  // Adds `value` to every count, with the kernel.
  [[nodiscard]] absl::Status CountUp(unsigned value);
  [[nodiscard]] absl::StatusOr<Counts> Read() const { return cuguest::Download(counts_.view()); }

  // The variable's value, as a kernel reads it.
  [[nodiscard]] absl::StatusOr<unsigned> AskKernelForMark();

  [[nodiscard]] const ContextRef& home() const { return context_.context(); }
  [[nodiscard]] DeviceView<unsigned> counts() { return counts_.view(); }

  // Destroys the context, with everything in it.
  [[nodiscard]] absl::Status Leave() { return ToStatus(context_.Release()); }

 private:
  Tenant(const Code& code, SharedContext context, Stream stream, DeviceBuffer<unsigned> counts)
      : code_(&code),
        context_(std::move(context)),
        stream_(std::move(stream)),
        counts_(std::move(counts)) {}

  const Code* code_;
  SharedContext context_;
  Stream stream_;
  DeviceBuffer<unsigned> counts_;
};

absl::StatusOr<Tenant> Tenant::Admit(cuguest::Device device, const Code& code, unsigned mark) {
  SharedContext context = SharedContext::Create(device);
  CUGUEST_RETURN_IF_ERROR(context);
  const ContextRef home = context.context();
  CUGUEST_ASSIGN_OR_RETURN(const DeviceView<unsigned> variable,
                           code.module.GetGlobal<unsigned>(home, "launch_mark"));
  CUGUEST_RETURN_IF_ERROR(cuguest::Fill(variable, mark));
  absl::StatusOr<Stream> stream = Stream::Create(home);
  CUGUEST_RETURN_IF_ERROR(stream);
  absl::StatusOr<DeviceBuffer<unsigned>> counts =
      DeviceBuffer<unsigned>::CopyOf(home, Counts(1000));
  CUGUEST_RETURN_IF_ERROR(counts);
  return Tenant(code, std::move(context), *std::move(stream), *std::move(counts));
}

absl::Status Tenant::CountUp(unsigned value) {
  const auto n = static_cast<unsigned>(counts_.size());
  absl::Status status = cuguest::LaunchForElements(code_->count_up, n, stream_.ref(), n, value,
                                                   DevicePtr(counts_.view()));
  if (status.ok()) status = stream_.ref().Synchronize();
  return status;
}

absl::StatusOr<unsigned> Tenant::AskKernelForMark() {
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<unsigned> mark,
                           DeviceBuffer<unsigned>::CopyOf(home(), Counts(1)));
  absl::Status status =
      cuguest::LaunchForElements(code_->get_mark, 1, stream_.ref(), DevicePtr(mark.view()));
  if (status.ok()) status = stream_.ref().Synchronize();
  if (!status.ok()) return status;
  CUGUEST_ASSIGN_OR_RETURN(const Counts read, cuguest::Download(mark.view()));
  return read.front();
}

}  // namespace server

namespace host {

using cuguest::ContextGuard;
using cuguest::Device;
using cuguest::testing::UndisturbedScope;
using server::Counts;
using server::Tenant;
using support::Cast;
using support::PrintRow;
using support::PrintScene;

struct Resident {
  const char* name;
  unsigned mark;  // also what is counted for the tenant
  Tenant tenant;
};
using Residents = std::vector<Resident>;

absl::StatusOr<Residents> AdmitAll(Device device, const server::Code& code) {
  Residents residents;
  for (const char* name : {"ada", "bob", "cleo"}) {
    const auto mark = static_cast<unsigned>(residents.size() + 1);
    absl::StatusOr<Tenant> tenant = Tenant::Admit(device, code, mark);
    CUGUEST_RETURN_IF_ERROR(tenant);
    residents.push_back({name, mark, *std::move(tenant)});
  }
  return residents;
}

// Each tenant has its own variable and memory.
void CheckOwn(Resident* resident, unsigned rounds) {
  const absl::StatusOr<unsigned> mark = resident->tenant.AskKernelForMark();
  if (CHECK_OK(mark.status())) CHECK(*mark == resident->mark);
  const absl::StatusOr<Counts> counts = resident->tenant.Read();
  if (CHECK_OK(counts.status())) CHECK(*counts == Counts(1000, rounds * resident->mark));
  CHECK(resident->tenant.counts().context() == resident->tenant.home());
}

void EachItsOwn(Residents* residents) {
  PrintScene("Three tenants, one module");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  for (Resident& resident : *residents) CHECK_OK(resident.tenant.CountUp(resident.mark));
  for (Resident& resident : *residents) {
    CheckOwn(&resident, 1);
    PrintRow(resident.name, "mark " + std::to_string(resident.mark), "its own variable and memory");
  }
}

// For driver calls of the server's own: a guard in place of cuCtxPushCurrent and cuCtxPopCurrent.
void EnterAndLeave(Residents* residents, const Cast& cast) {
  PrintScene("The server's own driver calls, in one context and then in another");
  for (Resident& resident : *residents) {
    const ContextGuard guard(resident.tenant.home());
    CHECK(guard.ok());
    PrintRow("inside the guard", cast.Draw(), resident.name);
    CHECK(cast.Draw() == "[" + std::string(resident.name) + "]<");
  }
  PrintRow("afterwards", cast.Draw());
}

void Refused(const std::string& what, const absl::Status& status) {
  PrintRow(what, "refused");
  support::PrintParagraph(std::string(status.message()));
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
}

void OneLeaves(Residents* residents) {
  PrintScene("One of them leaves");
  Resident& bob = (*residents)[1];
  CHECK_OK(bob.tenant.Leave());
  PrintRow("bob's context", "destroyed", "with everything in it");
  Refused("bob's next launch", bob.tenant.CountUp(1));
  Refused("a copy of bob's numbers", bob.tenant.Read().status());
  for (Resident* left : {&residents->front(), &residents->back()}) {
    CHECK_OK(left->tenant.CountUp(left->mark));
    CheckOwn(left, 2);
    PrintRow(left->name, "right", "its own variable and memory");
  }
}

absl::Status Demonstrate(const cuguest::Driver&, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const server::Code code, server::LoadCode());
  CUGUEST_ASSIGN_OR_RETURN(Residents residents, AdmitAll(device, code));
  Cast cast;
  for (const Resident& resident : residents) {
    cast.Name(resident.name, resident.tenant.home().get());
  }
  EachItsOwn(&residents);
  EnterAndLeave(&residents, cast);
  OneLeaves(&residents);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How are the tenants of one device kept apart?", &host::Demonstrate);
}
