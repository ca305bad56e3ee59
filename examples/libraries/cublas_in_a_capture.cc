// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How is a matrix product of cuBLAS captured in a graph?
//
// While a stream captures in the default mode, cublasCreate invalidates the capture, and so may a
// product on another stream, which allocates. In a CublasScope neither does. A captured product
// needs a workspace that is there at each launch: here the graph's own, by a ScratchBuffer. A graph
// that is cloned, or instantiated twice at a time, needs one that is kept as long as it is.
//
//   1. cuBLAS by itself
//
//      the stream captures           [X] [A]<        P is inactive
//      cublasCreate                  fails
//        ...
//   2. Through a CublasScope
//
//      the stream captures           [X]<            P is inactive
//      in another stream             right           while the first captures
//      the capture has ended         [X]<            P is inactive
//      launch 1                      right           with other matrices each time
//      ...

#include <cstddef>
#include <string>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/libraries/cublas.h"
#include "cuguest/objects/scratch_buffer.h"
#include "cuguest/status.h"
#include "examples/libraries/multiply.h"
#include "examples/support/stage.h"

// The library works in the context of the stream that it is handed.
namespace library {

using cuguest::runtime::CublasHandles;
using cuguest::runtime::CublasScope;
using support::DeviceProduct;

// cuBLAS's recommendation for a Hopper device (cuBLAS documentation, cublasSetWorkspace).
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

// In a stream that captures.
absl::Status Capture(CublasHandles& handles, DeviceProduct& product) {
  CUGUEST_ASSIGN_OR_RETURN(auto workspace, cuguest::ScratchBuffer<std::byte>::Allocate(
                                               product.stream(), kWorkspaceBytes));
  const CublasScope blas(handles, product.stream(), workspace.view());
  CUGUEST_RETURN_IF_ERROR(blas);
  return cuguest::runtime::ToStatus(product.Multiply(blas.handle()), "capture a product");
}

// In a stream that does not, with a workspace of cuBLAS's.
absl::Status Multiply(CublasHandles& handles, DeviceProduct& product) {
  const CublasScope blas(handles, product.stream());
  CUGUEST_RETURN_IF_ERROR(blas);
  return cuguest::runtime::ToStatus(product.Multiply(blas.handle()), "multiply");
}

}  // namespace library

namespace host {

using support::DeviceProduct;

void BeginCapture(const cuguest::StreamRef& stream) {
  SUCCEEDS(DRIVER(cuStreamBeginCapture)(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL));
}

void ByItself(const support::Stage& stage, const cuguest::StreamRef& stream) {
  support::PrintScene("cuBLAS by itself");
  const cuguest::ContextGuard guard(stream);
  BeginCapture(stream);
  CHECK(stage.Shows("the stream captures", "[X] [A]<", "P is inactive"));
  cublasHandle_t handle = nullptr;
  const absl::Status made =
      cuguest::runtime::ToStatus(cublasCreate(&handle), "create a handle while a stream captures");
  support::PrintRow("cublasCreate", CHECK(!made.ok()) ? "fails" : "succeeds");
  support::PrintText(std::string(made.message()));
  CUgraph graph = nullptr;
  CHECK(DRIVER(cuStreamEndCapture)(stream.get(), &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

// The same addresses each time, with other matrices there.
void Launch(CUgraph graph, DeviceProduct& captured, int n) {
  const support::Undisturbed undisturbed;
  CUgraphExec executable = nullptr;
  SUCCEEDS(DRIVER(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  for (unsigned launch = 1; launch <= 3; ++launch) {
    const support::Product product(n, /*seed=*/launch);
    CHECK_OK(captured.Change(product));
    SUCCEEDS(DRIVER(cuGraphLaunch)(executable, captured.stream().get()));
    support::PrintRow("launch " + std::to_string(launch), captured.IsRight() ? "right" : "WRONG",
                      "with other matrices each time");
  }
  SUCCEEDS(DRIVER(cuGraphExecDestroy)(executable));
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  const support::Stage stage(driver, device, {"X", "A"});
  stage.Set({"X"});
  const auto a = cuguest::ContextRef::Borrow(stage["A"]);
  const support::Product product(cudasim::Sim::IsActive() ? 64 : 256, /*seed=*/1);
  CUGUEST_ASSIGN_OR_RETURN(auto captured, DeviceProduct::Upload(a, product));
  CUGUEST_ASSIGN_OR_RETURN(auto other, DeviceProduct::Upload(a, product));
  ByItself(stage, captured.stream());

  support::PrintScene("Through a CublasScope");
  cuguest::runtime::CublasHandles handles;
  BeginCapture(captured.stream());
  CHECK(stage.Shows("the stream captures", "[X]<", "P is inactive"));
  {
    const support::Undisturbed undisturbed;
    CHECK_OK(library::Capture(handles, captured));
    CHECK_OK(library::Multiply(handles, other));
  }
  support::PrintRow("in another stream", other.IsRight() ? "right" : "WRONG",
                    "while the first captures");
  CUgraph graph = nullptr;
  SUCCEEDS(DRIVER(cuStreamEndCapture)(captured.stream().get(), &graph));
  CHECK(stage.Shows("the capture has ended", "[X]<", "P is inactive"));
  Launch(graph, captured, product.n());
  SUCCEEDS(DRIVER(cuGraphDestroy)(graph));
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How is a matrix product of cuBLAS captured in a graph?",
                             &host::Demonstrate);
}
