// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a program compile and run code that it receives?
//
// A client sends a formula over x, its parameters, and numbers. The server writes a kernel around
// the formula, compiles it with NVRTC, and runs it in the client's own context:
//
//   - a wrong formula is a status with the compiler's message;
//   - each text is compiled and loaded once, for all clients: a Module is valid in every context;
//   - a ParamBuffer lays out the parameters, and the launch compares them with the kernel's.

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/param_buffer.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "examples/code/nvrtc.h"
#include "examples/support/stage.h"

namespace server {

using Numbers = std::vector<float>;

struct Parameter {
  const char* type;
  std::string name;
  std::variant<int, float, double> value;
};

struct Formula {
  std::string name;
  std::string text;
  std::vector<Parameter> parameters;
};

std::string SourceOf(const Formula& formula) {
  std::string source = "extern \"C\" __global__ void " + formula.name +
                       "(unsigned n, const float* xs, float* results";
  for (const Parameter& parameter : formula.parameters) {
    source += std::string(", ") + parameter.type + " " + parameter.name;
  }
  return source +
         ") {\n"
         "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
         "  if (i >= n) return;\n"
         "  [[maybe_unused]] const float x = xs[i];\n"
         "  results[i] = " +
         formula.text + ";\n}\n";
}

class Server {
 public:
  // The formula's values, computed in `client`.
  absl::StatusOr<Numbers> Evaluate(const cuguest::ContextRef& client, const Formula& formula,
                                   const Numbers& xs) {
    CUGUEST_ASSIGN_OR_RETURN(const cuguest::Kernel kernel, KernelOf(formula));
    using Buffer = cuguest::DeviceBuffer<float>;
    CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(client));
    CUGUEST_ASSIGN_OR_RETURN(const Buffer x, Buffer::CopyOfAsync(stream, xs));
    CUGUEST_ASSIGN_OR_RETURN(const Buffer results, Buffer::AllocateAsync(stream, xs.size()));
    cuguest::ParamBuffer params;
    absl::Status packed = params.Add(static_cast<unsigned>(xs.size()));
    for (const Buffer* buffer : {&x, &results}) packed.Update(params.Add(buffer->get()));
    const auto add = [&](const auto& value) { return params.Add(value); };
    for (const Parameter& own : formula.parameters) packed.Update(std::visit(add, own.value));
    CUGUEST_RETURN_IF_ERROR(packed);
    CUGUEST_RETURN_IF_ERROR(cuguest::LaunchForElements(kernel, xs.size(), stream, params));
    return cuguest::Download(results.view(), stream);
  }

  std::size_t CountCompiled() const { return kernels_.size(); }

 private:
  // While one client's formula is compiled, the others wait: it may be the same one.
  absl::StatusOr<cuguest::Kernel> KernelOf(const Formula& formula) {
    const std::string source = SourceOf(formula);
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = kernels_.find(source);
    if (known != kernels_.end()) return known->second;
    CUGUEST_ASSIGN_OR_RETURN(const Nvrtc* const compiler, Nvrtc::Get());
    CUGUEST_ASSIGN_OR_RETURN(const auto ptx, compiler->Compile(source, formula.name + ".cu"));
    CUGUEST_ASSIGN_OR_RETURN(const auto module, cuguest::Module::Load(ptx, formula.name));
    CUGUEST_ASSIGN_OR_RETURN(const auto kernel, module.GetKernel(formula.name));
    return kernels_.emplace(source, kernel).first->second;
  }

  std::mutex mutex_;
  std::map<std::string, cuguest::Kernel> kernels_;  // by their source
};

}  // namespace server

namespace client {

// Each formula's values of Ramp(2) are a ramp of this step.
const std::pair<server::Formula, int> kFormulas[] = {
    {{"stretch", "factor * x", {{"float", "factor", 1.5F}}}, 3},
    {{"weigh", "(a + b) * x * k", {{"int", "k", 3}, {"double", "a", 0.5}, {"double", "b", 2.0}}},
     15}};

absl::Status Demonstrate(const cuguest::ObjectDriver&, cuguest::Device device) {
  server::Server server;
  const auto send = [&](const server::Formula& formula) -> absl::StatusOr<server::Numbers> {
    CUGUEST_ASSIGN_OR_RETURN(const auto context, cuguest::SharedContext::Create(device));
    return server.Evaluate(context, formula, support::Ramp(2));
  };
  support::PrintScene("Four clients, in contexts of their own, send two formulas each");
  std::vector<std::thread> clients;
  while (clients.size() < 4) {
    clients.emplace_back([&] {
      for (const auto& [formula, step] : kFormulas) {
        CHECK(support::Has(send(formula), support::Ramp(step)));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  support::PrintRow("compiled", std::to_string(server.CountCompiled()), "of 8 that were sent");
  CHECK(server.CountCompiled() == 2);

  CHECK(support::IsRefused("x + z", send({"wrong", "x + z", {}}).status(),
                           absl::StatusCode::kInvalidArgument, "identifier \"z\" is undefined"));
  return absl::OkStatus();
}

}  // namespace client

int main() {
  const absl::StatusOr<const server::Nvrtc*> compiler = server::Nvrtc::Get();
  if (!compiler.ok()) {
    std::fprintf(stderr, "skipped: %s\n", std::string(compiler.status().message()).c_str());
    return support::kSkipped;
  }
  return support::RunExample("How does a program compile and run code that it receives?",
                             &client::Demonstrate);
}
