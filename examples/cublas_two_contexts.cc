// SPDX-License-Identifier: Apache-2.0
//
// How does one thread multiply in two contexts?
//
// One CublasHandles serves every context: it has handles of each, made where they belong when
// they are first needed. The stream says which context a CublasScope works in, so nothing has
// to be switched, and nothing can be mixed up: with two devices, a handle of one that is used
// while the other is current costs the process all of its contexts.
//
//   2. In both at a time
//
//      in A's scope                  [X] [A]<
//      in B's scope                  [X] [A] [B]<    submitted to both
//      after both                    [X]<            both right
//
//   4. B is destroyed
//
//      the product in B              refused
//        ...
//      the product in A              right

#include <cublas_v2.h>
#include <cuda.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/runtime/cublas.h"
#include "cuguest/shared_context.h"
#include "cuguest/testing/sim.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/libraries/multiply.h"
#include "examples/libraries/product.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "examples/support/worker.h"

namespace {

using cuguest::ContextRef;
using cuguest::Device;
using cuguest::SharedContext;
using cuguest::runtime::CublasHandles;
using cuguest::runtime::CublasScope;
using cuguest::testing::UndisturbedScope;
using support::Cast;
using support::DeviceProduct;
using support::PrintRow;
using support::PrintScene;
using support::Product;

// A context of the program's, and a product in it.
class Site {
 public:
  [[nodiscard]] static absl::StatusOr<Site> Open(const char* name, Device device,
                                                 const Product& product) {
    absl::StatusOr<SharedContext> context = SharedContext::Create(device);
    if (!context.ok()) return context.status();
    absl::StatusOr<DeviceProduct> matrices = DeviceProduct::Upload(context->incarnation(), product);
    if (!matrices.ok()) return matrices.status();
    return Site(name, *std::move(context), *std::move(matrices));
  }

  [[nodiscard]] const char* name() const { return name_; }
  [[nodiscard]] const ContextRef& context() const { return context_.incarnation(); }
  [[nodiscard]] DeviceProduct& product() { return matrices_; }

  // Ends the context, with what is in it.
  [[nodiscard]] absl::Status Close() { return context_.Detach(); }

 private:
  Site(const char* name, SharedContext context, DeviceProduct matrices)
      : name_(name), context_(std::move(context)), matrices_(std::move(matrices)) {}

  const char* name_;
  SharedContext context_;
  DeviceProduct matrices_;
};

struct House {
  const Cast& cast;
  Site& a;
  Site& b;
  CublasHandles& handles;
};

const char* Verdict(Site& site) { return site.product().IsRight() ? "right" : "WRONG"; }

// Submits the product. Returns the handle that did it, which is another scope's afterwards.
cublasHandle_t Submit(const House& house, Site& site, const char* when) {
  const CublasScope blas(house.handles, site.product().stream());
  if (!CHECK_OK(blas.status())) return nullptr;
  PrintRow(when, house.cast.Draw(), std::string("in the scope of ") + site.name());
  CHECK(house.cast.Draw() == std::string("[X] [") + site.name() + "]<");
  CHECK(site.product().Multiply(blas.handle()) == CUBLAS_STATUS_SUCCESS);
  return blas.handle();
}

void InTurns(const House& house) {
  PrintScene("In one after the other");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  PrintRow("before", house.cast.Draw());
  const cublasHandle_t first_a = Submit(house, house.a, "the first time");
  const cublasHandle_t first_b = Submit(house, house.b, "");
  const cublasHandle_t again_a = Submit(house, house.a, "and again");
  const cublasHandle_t again_b = Submit(house, house.b, "");
  PrintRow("A's product, B's product", std::string(Verdict(house.a)) + ", " + Verdict(house.b));
  CHECK(first_a != first_b);
  CHECK(first_a == again_a && first_b == again_b);
  PrintRow("after", house.cast.Draw(), "one handle of each context was made");
}

void AtATime(const House& house) {
  PrintScene("In both at a time");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  {
    const CublasScope blas_a(house.handles, house.a.product().stream());
    if (!CHECK_OK(blas_a.status())) return;
    PrintRow("in A's scope", house.cast.Draw());
    CHECK(house.a.product().Multiply(blas_a.handle()) == CUBLAS_STATUS_SUCCESS);

    const CublasScope blas_b(house.handles, house.b.product().stream());
    if (!CHECK_OK(blas_b.status())) return;
    PrintRow("in B's scope", house.cast.Draw(), "submitted to both");
    CHECK(house.cast.Draw() == "[X] [A] [B]<");
    CHECK(house.b.product().Multiply(blas_b.handle()) == CUBLAS_STATUS_SUCCESS);
  }
  const std::string both = std::string(Verdict(house.a)) + ", " + Verdict(house.b);
  PrintRow("after both", house.cast.Draw(), both);
}

// A handle is one thread's at a time: cuBLAS keeps the stream in it.
void TwoThreads(const House& house) {
  PrintScene("In one context, on two threads");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const CublasScope mine(house.handles, house.a.product().stream());
  if (!CHECK_OK(mine.status())) return;
  support::Worker other;
  other.Run([&] {
    const CublasScope theirs(house.handles, house.a.product().stream());
    if (!CHECK_OK(theirs.status())) return;
    CHECK(theirs.handle() != mine.handle());
    PrintRow("while one is borrowed", house.cast.Draw(), "the other thread has one of its own");
    CHECK(house.a.product().Multiply(theirs.handle()) == CUBLAS_STATUS_SUCCESS);
  });
  PrintRow("the other thread's product", Verdict(house.a));
}

void OneIsDestroyed(const House& house) {
  PrintScene("B is destroyed");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  CHECK(house.handles.Forget(house.b.context()));  // while they can be destroyed
  CHECK_OK(house.b.Close());
  {
    const CublasScope blas(house.handles, house.b.product().stream());
    PrintRow("the product in B", "refused");
    support::PrintParagraph(std::string(blas.status().message()));
    CHECK(blas.status().code() == absl::StatusCode::kFailedPrecondition);
  }
  Submit(house, house.a, "the product in A");
  PrintRow("", Verdict(house.a));
}

absl::Status Demonstrate(const cuguest::Driver& driver, Device first) {
  const absl::StatusOr<support::HostContext> x = support::HostContext::Create(driver, first);
  if (!x.ok()) return x.status();
  const absl::StatusOr<int> devices = Device::Count();
  if (!devices.ok()) return devices.status();
  const absl::StatusOr<Device> last = Device::At(cuguest::Ordinal{*devices - 1});
  if (!last.ok()) return last.status();

  const Product for_a(cuguest::testing::Sim::IsActive() ? 64 : 1024, /*seed=*/1);
  const Product for_b(for_a.n(), /*seed=*/2);
  absl::StatusOr<Site> a = Site::Open("A", first, for_a);
  if (!a.ok()) return a.status();
  absl::StatusOr<Site> b = Site::Open("B", *last, for_b);
  if (!b.ok()) return b.status();
  std::printf("   matrices: %d x %d; A is on device 0, B on device %d\n", for_a.n(), for_a.n(),
              *devices - 1);

  Cast cast;
  cast.Name("X", x->get());
  cast.Name("A", a->context().get());
  cast.Name("B", b->context().get());
  const support::HostStack stack(driver, {x->get()});
  CublasHandles handles;
  const House house{cast, *a, *b, handles};
  InTurns(house);
  AtATime(house);
  TwoThreads(house);
  OneIsDestroyed(house);
  handles.Forget(a->context());
  return absl::OkStatus();
}

}  // namespace

int main() {
  return support::RunExample("How does one thread multiply in two contexts?", &Demonstrate);
}
