// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How are the tenants of one device kept apart?
//
// A server works for several users at once, each in a context of its own: what one of them
// allocates, loads and sets belongs to its context, and is destroyed with it. The contexts are
// current only while work is submitted to them. The code is loaded once: a Module is valid in every
// context, and has its variables once in each.
//
// Contexts do not protect from a kernel with an illegal address: it destroys every context of the
// process on that device (CUDA Driver API, CUDA_ERROR_ILLEGAL_ADDRESS). A server that does not
// trust its kernels needs one process for each tenant.

#include <string>
#include <utility>
#include <vector>

#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "examples/support/stage.h"
#include "kernels/launch.h"

namespace server {

using Counts = std::vector<unsigned>;

cuguest::Module::Once code({cuguest_kernels::launch_fatbin, cuguest_kernels::launch_fatbin_size},
                           "launch");  // for all tenants
cuguest::Kernel::Once count_up(code, "count_up");
cuguest::Kernel::Once get_mark(code, "get_mark");

// Work for one user. It needs no guard: every call finds the tenant's context.
class Tenant {
 public:
  // `mark` becomes the value of the code's variable in the tenant's context.
  [[nodiscard]] static absl::StatusOr<Tenant> Admit(cuguest::Device device, unsigned mark) {
    Tenant tenant;
    CUGUEST_ASSIGN_OR_RETURN(tenant.context_, cuguest::SharedContext::Create(device));
    CUGUEST_ASSIGN_OR_RETURN(tenant.stream_, cuguest::Stream::Create(tenant.context_));
    CUGUEST_ASSIGN_OR_RETURN(
        tenant.counts_, cuguest::DeviceBuffer<unsigned>::CopyOf(tenant.context_, Counts(1000)));
    CUGUEST_ASSIGN_OR_RETURN(const auto* const module, code.Get());
    CUGUEST_ASSIGN_OR_RETURN(const auto variable,
                             module->GetGlobal<unsigned>(tenant.context_, "launch_mark"));
    CUGUEST_RETURN_IF_ERROR(cuguest::Fill(variable, mark));
    return tenant;
  }

  // Adds `value` to every count, with a kernel.
  [[nodiscard]] absl::Status CountUp(unsigned value) {
    CUGUEST_ASSIGN_OR_RETURN(const auto* const kernel, count_up.Get());
    const auto n = static_cast<unsigned>(counts_.size());
    return cuguest::LaunchForElements(*kernel, n, stream_, n, value, counts_);
  }
  [[nodiscard]] absl::StatusOr<Counts> Read() const {
    return cuguest::Download(counts_.view(), stream_);
  }

  // The variable's value, as a kernel reads it.
  [[nodiscard]] absl::StatusOr<unsigned> AskKernelForMark() {
    CUGUEST_ASSIGN_OR_RETURN(const auto* const kernel, get_mark.Get());
    CUGUEST_ASSIGN_OR_RETURN(auto mark, cuguest::DeviceBuffer<unsigned>::AllocateAsync(stream_, 1));
    CUGUEST_RETURN_IF_ERROR(cuguest::LaunchForElements(*kernel, 1, stream_, mark));
    CUGUEST_ASSIGN_OR_RETURN(const Counts read, cuguest::Download(mark.view(), stream_));
    return read.front();
  }

  // Destroys the context, with everything in it.
  [[nodiscard]] absl::Status Leave() { return ToStatus(context_.Release()); }

 private:
  Tenant() = default;

  cuguest::SharedContext context_;
  cuguest::Stream stream_;
  cuguest::DeviceBuffer<unsigned> counts_;
};

}  // namespace server

namespace host {

using server::Counts;
using server::Tenant;

struct Resident {
  const char* name;
  unsigned mark;  // also what is counted for the tenant
  Tenant tenant;
};

// Each tenant has its own variable and memory.
void CountAndCheck(Resident& resident, unsigned rounds) {
  CHECK_OK(resident.tenant.CountUp(resident.mark));
  const absl::StatusOr<unsigned> mark = resident.tenant.AskKernelForMark();
  const absl::StatusOr<Counts> counts = resident.tenant.Read();
  if (!CHECK_OK(mark.status()) || !CHECK_OK(counts.status())) return;
  CHECK(*mark == resident.mark && *counts == Counts(1000, rounds * resident.mark));
  support::PrintRow(resident.name, "mark " + std::to_string(*mark), "its own variable and memory");
}

void Refused(const char* what, const absl::Status& status) {
  CHECK(support::IsRefused(what, status, absl::StatusCode::kFailedPrecondition));
}

absl::Status Demonstrate(const cuguest::ObjectDriver&, cuguest::Device device) {
  std::vector<Resident> residents;
  for (const char* name : {"ada", "bob", "cleo"}) {
    const auto mark = static_cast<unsigned>(residents.size() + 1);
    CUGUEST_ASSIGN_OR_RETURN(Tenant tenant, Tenant::Admit(device, mark));
    residents.push_back({name, mark, std::move(tenant)});
  }
  support::PrintScene("Three tenants, one module");
  const support::Undisturbed undisturbed;
  for (Resident& resident : residents) CountAndCheck(resident, 1);

  support::PrintScene("One of them leaves");
  Tenant& bob = residents[1].tenant;
  CHECK_OK(bob.Leave());
  Refused("bob's next launch", bob.CountUp(1));
  Refused("a copy of bob's numbers", bob.Read().status());
  CountAndCheck(residents[0], 2);
  CountAndCheck(residents[2], 2);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How are the tenants of one device kept apart?", &host::Demonstrate);
}
