// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How is a matrix product of cuBLAS captured in a graph?
//
// While a stream captures in the default mode, cublasCreate invalidates the capture, and so may a
// product on another stream, which allocates. In a CublasScope neither does. A captured product
// needs a workspace of the caller's: cuBLAS would allocate one in the graph, which can then be
// instantiated only once.
//
//   1. cuBLAS by itself
//
//      the stream captures           [X] [A]<
//      cublasCreate                  fails
//        ...
//      the capture                   is invalidated
//
//   2. Through a CublasScope
//
//      the stream captures           [X]<
//      a product in this stream      [X] [A]<        its handle is created now
//      a product in another one      [X] [A]<        with the same handle
//      the other product             right           while the first is captured
//      captured                      [X]<            2 node(s)
//
//   3. The graph is launched
//
//      launch 1                      right           with other matrices each time

#include <cublas_v2.h>
#include <cuda.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/driver.h"
#include "cuguest/runtime/cublas.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/libraries/multiply.h"
#include "examples/libraries/product.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

namespace {

using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::SharedContext;
using cuguest::StreamRef;
using cuguest::runtime::CublasHandles;
using cuguest::runtime::CublasScope;
using cuguest::testing::UndisturbedScope;
using support::Cast;
using support::DeviceProduct;
using support::PrintRow;
using support::PrintScene;
using support::Product;

#define SUCCEEDS(call) CHECK((call) == CUDA_SUCCESS)

// In the default mode, which is the strictest.
void BeginCapture(const StreamRef& stream) {
  SUCCEEDS(DRIVER(cuStreamBeginCapture)(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL));
}

// What the host captured.
class Graph {
 public:
  explicit Graph(const StreamRef& stream) {
    SUCCEEDS(DRIVER(cuStreamEndCapture)(stream.get(), &graph_));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    if (executable_ != nullptr) SUCCEEDS(DRIVER(cuGraphExecDestroy)(executable_));
    SUCCEEDS(DRIVER(cuGraphDestroy)(graph_));
  }

  [[nodiscard]] std::size_t CountNodes() const {
    std::size_t count = 0;
    SUCCEEDS(DRIVER(cuGraphGetNodes)(graph_, nullptr, &count));
    return count;
  }

  void Launch(const StreamRef& stream) {
    if (executable_ == nullptr) {
      SUCCEEDS(DRIVER(cuGraphInstantiateWithFlags)(&executable_, graph_, 0));
    }
    SUCCEEDS(DRIVER(cuGraphLaunch)(executable_, stream.get()));
  }

 private:
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

struct House {
  const Cast& cast;
  CublasHandles& handles;
  DeviceProduct& captured;
  DeviceProduct& other;  // in the same context, on a stream of its own
  DeviceBuffer<std::byte>& workspace;

  [[nodiscard]] const StreamRef& stream() const { return captured.stream(); }
};

void Bare(const House& house) {
  PrintScene("cuBLAS by itself");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const cuguest::ContextGuard guard(house.stream().context());
  BeginCapture(house.stream());
  PrintRow("the stream captures", house.cast.Draw());
  cublasHandle_t handle = nullptr;
  const absl::Status made =
      cuguest::runtime::ToStatus(cublasCreate(&handle), "create a handle while a stream captures");
  PrintRow("cublasCreate", made.ok() ? "succeeds" : "fails");
  support::PrintParagraph(std::string(made.message()));
  CHECK(!made.ok());
  CUgraph graph = nullptr;
  const CUresult ended = DRIVER(cuStreamEndCapture)(house.stream().get(), &graph);
  PrintRow("the capture", ended == CUDA_SUCCESS ? "is valid" : "is invalidated");
  CHECK(ended == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

void CaptureProduct(const House& house) {
  const CublasScope blas(house.handles, house.stream(), house.workspace.view());
  if (!CHECK_OK(blas.status())) return;
  PrintRow("a product in this stream", house.cast.Draw(), "its handle is created now");
  CHECK(house.captured.Multiply(blas.handle()) == CUBLAS_STATUS_SUCCESS);
}

// During the capture. This product is executed, with a workspace of cuBLAS's.
void MultiplyElsewhere(const House& house) {
  const CublasScope blas(house.handles, house.other.stream());
  if (!CHECK_OK(blas.status())) return;
  PrintRow("a product in another one", house.cast.Draw(), "with the same handle");
  CHECK(house.other.Multiply(blas.handle()) == CUBLAS_STATUS_SUCCESS);
}

// The same addresses each time, with other matrices there.
void Replay(const House& house, Graph& graph, const std::vector<Product>& products) {
  PrintScene("The graph is launched");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  int launch = 0;
  for (const Product& product : products) {
    CHECK_OK(house.captured.Change(product));
    graph.Launch(house.stream());
    PrintRow("launch " + std::to_string(++launch), house.captured.IsRight() ? "right" : "WRONG",
             "with other matrices each time");
  }
}

void ThroughAScope(const House& house, const std::vector<Product>& products) {
  PrintScene("Through a CublasScope");
  BeginCapture(house.stream());
  PrintRow("the stream captures", house.cast.Draw());
  CaptureProduct(house);
  MultiplyElsewhere(house);
  PrintRow("the other product", house.other.IsRight() ? "right" : "WRONG",
           "while the first is captured");
  Graph graph(house.stream());
  PrintRow("captured", house.cast.Draw(), std::to_string(graph.CountNodes()) + " node(s)");
  CHECK(graph.CountNodes() > 0);
  Replay(house, graph, products);
}

absl::Status Demonstrate(const cuguest::Driver& driver, cuguest::Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const support::HostContext x,
                           support::HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const SharedContext a, SharedContext::Create(device));
  const ContextRef context = a.context();

  std::vector<Product> products;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    products.emplace_back(cudasim::Sim::IsActive() ? 64 : 256, seed);
  }
  std::printf("   matrices: %d x %d\n", products.front().n(), products.front().n());
  CUGUEST_ASSIGN_OR_RETURN(DeviceProduct captured,
                           DeviceProduct::Upload(context, products.front()));
  CUGUEST_ASSIGN_OR_RETURN(DeviceProduct other, DeviceProduct::Upload(context, products.front()));
  // cuBLAS's recommendation for a Hopper device (cuBLAS documentation, cublasSetWorkspace).
  constexpr std::size_t kWorkspace = std::size_t{32} << 20;
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<std::byte> workspace,
                           DeviceBuffer<std::byte>::Allocate(context, kWorkspace));

  Cast cast;
  cast.Name("X", x.get());
  cast.Name("A", context.get());
  const support::HostStack stack(driver, {x.get()});
  CublasHandles handles;
  const House house{cast, handles, captured, other, workspace};
  Bare(house);
  ThroughAScope(house, products);
  return absl::OkStatus();
}

}  // namespace

int main() {
  return support::RunExample("How is a matrix product of cuBLAS captured in a graph?",
                             &Demonstrate);
}
