// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches with drivers that are too old for a part of it: each asks in a process of its own,
// because the driver is resolved once.

#include <string>

#include "cudasim/sim.h"
#include "cuguest/driver.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/occupancy.h"
#include "kernels/launch.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::CodeImage;
using cuguest::ContextRef;
using cuguest::Kernel;
using cuguest::Launch;
using cuguest::LaunchShape;
using cuguest::Module;
using cuguest::StreamRef;

bool Mentions(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

// A context with a kernel that takes no parameters, on the driver as it is by now.
class World {
 public:
  World() {
    Sim::RegisterKernel("nothing", [](const cudasim::SimLaunch&) {
      ++g_launches;
      return CUDA_SUCCESS;
    });
  }
  const ContextRef& ref() const { return ref_; }
  const StreamRef& stream() const { return stream_; }
  const Kernel& nothing() const { return nothing_; }
  static unsigned Launches() { return g_launches; }

 private:
  static unsigned g_launches;
  struct OwnContext {  // goes last
    CUcontext context = cuguest_test::MakeContext();
    ~OwnContext() { CHECK((*cuguest::Driver::Get())->CtxDestroy(context) == CUDA_SUCCESS); }
  };
  OwnContext context_;
  ContextRef ref_ = ContextRef::Borrow(context_.context);
  StreamRef stream_ = StreamRef::Borrow(nullptr, ref_);
  Module module_ = Module::LoadIn(ref_, CodeImage::Borrow({cuguest_kernels::launch_fatbin,
                                                           cuguest_kernels::launch_fatbin_size},
                                                          "launch.fatbin")
                                            .value())
                       .value();
  Kernel nothing_ = module_.GetKernel("nothing").value();
};
unsigned World::g_launches = 0;

// Below CUDA 12.4 the driver does not tell what a kernel takes.
void WithoutParameterInfo() {
  Sim::SetDriverVersion(12030);
  const World world;
  CHECK(Launch(world.nothing(), {}, world.stream()).ok());
  CHECK(Launch(world.nothing(), {}, world.stream()).ok());
  CHECK(Launch(world.nothing(), {}, world.stream(), cuguest::HostSpan<void* const>()).ok());
  // Nothing is found wrong: the kernel takes none, and reads none.
  CHECK(Launch(world.nothing(), {}, world.stream(), 1, 2).ok());
  CHECK(World::Launches() == 4);
}

// Below 12.0 kernels are functions of modules, and contexts have no ids.
void BelowCuda12() {
  Sim::SetDriverVersion(11080);
  const World world;
  CHECK(Launch(world.nothing(), {}, world.stream()).ok());
  CHECK(World::Launches() == 1);
  const absl::Status status = Launch(world.nothing(), {0, 1}, world.stream());
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
}

// Below 11.6 there is cuLaunchKernel alone.
void WithoutExtendedLaunches() {
  Sim::SetDriverVersion(11050);
  const World world;
  CHECK(Launch(world.nothing(), {}, world.stream()).ok());
  LaunchShape cooperative;
  cooperative.cooperative = true;
  LaunchShape cluster;
  cluster.cluster = LaunchShape::Dim3{1};
  for (const LaunchShape& shape : {cooperative, cluster}) {
    const absl::Status status = Launch(world.nothing(), shape, world.stream());
    CHECK(status.code() == absl::StatusCode::kUnimplemented);
    CHECK(Mentions(status, "cuLaunchKernelEx"));
    CHECK(Mentions(status, "11.6"));
  }
  CHECK(World::Launches() == 1);
}

void WithoutOccupancyOfClusters() {
  Sim::HideEntry("cuOccupancyMaxActiveClusters");
  const World world;
  LaunchShape shape;
  shape.cluster = LaunchShape::Dim3{1};
  for (const absl::Status& status :
       {cuguest::MaxActiveClusters(world.nothing(), world.ref(), shape).status(),
        Launch(world.nothing(), shape, world.stream())}) {
    CHECK(status.code() == absl::StatusCode::kUnimplemented);
    CHECK(Mentions(status, "cuOccupancyMaxActiveClusters"));
  }
}

void WithoutAvailableShared() {
  Sim::HideEntry("cuOccupancyAvailableDynamicSMemPerBlock");
  const World world;
  const absl::Status status =
      cuguest::AvailableDynamicShared(world.nothing(), world.ref(), 1, 32).status();
  CHECK(status.code() == absl::StatusCode::kUnimplemented);
  CHECK(Mentions(status, "cuOccupancyAvailableDynamicSMemPerBlock"));
  CHECK(cuguest::MaxActiveBlocks(world.nothing(), world.ref(), 32).ok());
}

}  // namespace

int main(int argc, char** argv) {
  using cuguest_test::On;
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"without_parameter_info", &WithoutParameterInfo, {}, 0, On::kSimulation},
          {"below_cuda_12", &BelowCuda12, {}, 0, On::kSimulation},
          {"without_extended_launches", &WithoutExtendedLaunches, {}, 0, On::kSimulation},
          {"without_occupancy_of_clusters", &WithoutOccupancyOfClusters, {}, 0, On::kSimulation},
          {"without_available_shared", &WithoutAvailableShared, {}, 0, On::kSimulation},
      });
}
