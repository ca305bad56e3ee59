// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a program compile and run code that it receives?
//
// A small server: a client sends a formula over x and y, its parameters, and numbers. The server
// writes a kernel around the formula, compiles it with NVRTC, and runs it in the client's own
// context. It knows only the text of the formula, so
//
//   - a wrong formula is a status with the compiler's message;
//   - each text is compiled and loaded once, for all clients: a Module is valid in every context;
//   - the kernel's parameters are known at run time only: ParamBuffer lays them out, and the launch
//     compares them with those of the compiled kernel.
//
//   1. Four clients, in contexts of their own, send formulas
//
//      lerp                          right           x + t * (y - x)
//      ...
//      compiled                      3               of 12 that were sent
//
//   2. Wrong formulas
//
//      x + z                         refused
//        compile undefined.cu: NVRTC_ERROR_COMPILATION
//        undefined.cu(6): error: identifier "z" is undefined
//        ...

#include <cstddef>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cudasim/sim.h"
#include "cuguest/code_image.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/param_buffer.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "examples/code/nvrtc.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

namespace server {

using cuguest::CodeImage;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::Kernel;
using cuguest::LaunchShape;
using cuguest::Module;
using cuguest::ParamBuffer;
using cuguest::Stream;
using Numbers = std::vector<float>;

// A parameter of a formula, by the type that it has in the kernel.
struct Parameter {
  std::string name;
  std::variant<int, float, double> value;
};

// What a client sends.
struct Formula {
  std::string name;  // of the kernel
  std::string text;
  std::vector<Parameter> parameters;
};

const char* TypeOf(const Parameter& parameter) {
  constexpr const char* kTypes[] = {"int", "float", "double"};
  return kTypes[parameter.value.index()];
}

std::string SourceOf(const Formula& formula) {
  std::string parameters;
  for (const Parameter& parameter : formula.parameters) {
    parameters += std::string(", ") + TypeOf(parameter) + " " + parameter.name;
  }
  return "extern \"C\" __global__ void " + formula.name +
         "(unsigned n, const float* xs, const float* ys, float* results" + parameters +
         ") {\n"
         "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
         "  if (i >= n) return;\n"
         "  [[maybe_unused]] const float x = xs[i];\n"
         "  [[maybe_unused]] const float y = ys[i];\n"
         "  results[i] = " +
         formula.text + ";\n}\n";
}

absl::StatusOr<Kernel> Compile(const std::string& source, const std::string& name) {
  CUGUEST_ASSIGN_OR_RETURN(const Nvrtc* const compiler, Nvrtc::Get());
  CUGUEST_ASSIGN_OR_RETURN(const std::string ptx, compiler->Compile(source, name + ".cu"));
  CUGUEST_ASSIGN_OR_RETURN(const CodeImage image, CodeImage::FromPtx(ptx, name));
  CUGUEST_ASSIGN_OR_RETURN(const Module module, Module::Load(image));
  return module.GetKernel(name);
}

// Threads: any.
class Server {
 public:
  // The formula's value for every pair, computed in `client`.
  absl::StatusOr<Numbers> Evaluate(const ContextRef& client, const Formula& formula,
                                   const Numbers& xs, const Numbers& ys) {
    CUGUEST_ASSIGN_OR_RETURN(const Kernel kernel, KernelOf(formula));
    return Run(client, kernel, formula, xs, ys);
  }

  std::size_t CountCompiled() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return kernels_.size();
  }

 private:
  // While one client's formula is compiled, the others wait: it may be the same one.
  absl::StatusOr<Kernel> KernelOf(const Formula& formula) {
    const std::string source = SourceOf(formula);
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = kernels_.find(source);
    if (known != kernels_.end()) return known->second;
    absl::StatusOr<Kernel> kernel = Compile(source, formula.name);
    if (kernel.ok()) kernels_.emplace(source, *kernel);
    return kernel;
  }

  static absl::StatusOr<Numbers> Run(const ContextRef& client, const Kernel& kernel,
                                     const Formula& formula, const Numbers& xs, const Numbers& ys);

  std::mutex mutex_;
  std::map<std::string, Kernel> kernels_;  // by their source
};

absl::StatusOr<ParamBuffer> Pack(std::size_t count, const DeviceBuffer<float>& xs,
                                 const DeviceBuffer<float>& ys, const DeviceBuffer<float>& results,
                                 const std::vector<Parameter>& parameters) {
  ParamBuffer buffer;
  absl::Status status = buffer.Add(static_cast<unsigned>(count));
  for (const DeviceBuffer<float>* vector : {&xs, &ys, &results}) {
    status.Update(buffer.Add(vector->get()));
  }
  for (const Parameter& parameter : parameters) {
    status.Update(
        std::visit([&](const auto& value) { return buffer.Add(value); }, parameter.value));
  }
  if (!status.ok()) return status;
  return buffer;
}

absl::StatusOr<Numbers> Server::Run(const ContextRef& client, const Kernel& kernel,
                                    const Formula& formula, const Numbers& xs, const Numbers& ys) {
  CUGUEST_ASSIGN_OR_RETURN(const Stream stream, Stream::Create(client));
  CUGUEST_ASSIGN_OR_RETURN(const DeviceBuffer<float> x, DeviceBuffer<float>::CopyOf(client, xs));
  CUGUEST_ASSIGN_OR_RETURN(const DeviceBuffer<float> y, DeviceBuffer<float>::CopyOf(client, ys));
  CUGUEST_ASSIGN_OR_RETURN(const DeviceBuffer<float> results,
                           DeviceBuffer<float>::Allocate(client, xs.size()));
  CUGUEST_ASSIGN_OR_RETURN(const ParamBuffer params,
                           Pack(xs.size(), x, y, results, formula.parameters));

  absl::Status status = cuguest::LaunchForElements(kernel, xs.size(), stream.ref(), params);
  if (status.ok()) status = stream.ref().Synchronize();
  if (!status.ok()) return status;
  return cuguest::Download(results.view());
}

}  // namespace server

namespace client {

using cudasim::Sim;
using cudasim::SimLaunch;
using cuguest::Device;
using cuguest::SharedContext;
using server::Formula;
using server::Numbers;
using server::Server;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;

// A formula, and its function on the host: to check the results, and to run in place of the kernel
// where there is no GPU. `parameters` are pointers to the formula's.
using Compute = float (*)(float x, float y, void* const* parameters);
struct Known {
  Formula formula;
  Compute compute;
};

template <typename T>
T Read(void* const* parameters, int index) {
  return *static_cast<const T*>(parameters[index]);
}
float Lerp(float x, float y, void* const* parameters) {
  return x + Read<float>(parameters, 0) * (y - x);
}
float Clip(float x, float, void* const* parameters) {
  const auto high = static_cast<float>(Read<int>(parameters, 0));
  return x < high ? x : high;
}
float Weigh(float x, float y, void* const* parameters) {
  const double sum = Read<double>(parameters, 1) * x + Read<double>(parameters, 2) * y;
  return static_cast<float>(sum * Read<int>(parameters, 0));
}

const std::vector<Known>& Formulas() {
  static const auto& formulas = *new std::vector<Known>{
      {{"lerp", "x + t * (y - x)", {{"t", 0.5F}}}, &Lerp},
      {{"clip", "x < high ? x : high", {{"high", 100}}}, &Clip},
      {{"weigh", "(a * x + b * y) * times", {{"times", 3}, {"a", 0.25}, {"b", 2.0}}}, &Weigh},
  };
  return formulas;
}

// The parameters of a generated kernel begin as the server's SourceOf() says.
template <Compute kCompute>
CUresult HostFunction(const SimLaunch& launch) {
  constexpr int kOwn = 4;
  const auto n = Read<unsigned>(launch.parameters, 0);
  const auto* const xs = Read<const float*>(launch.parameters, 1);
  const auto* const ys = Read<const float*>(launch.parameters, 2);
  auto* const results = Read<float*>(launch.parameters, 3);
  for (unsigned i = 0; i < n; ++i) results[i] = kCompute(xs[i], ys[i], launch.parameters + kOwn);
  return CUDA_SUCCESS;
}

void RegisterHostFunctions() {
  Sim::RegisterKernel("lerp", &HostFunction<&Lerp>);
  Sim::RegisterKernel("clip", &HostFunction<&Clip>);
  Sim::RegisterKernel("weigh", &HostFunction<&Weigh>);
}

Numbers OnTheHost(const Known& known, const Numbers& xs, const Numbers& ys) {
  std::vector<server::Parameter> parameters = known.formula.parameters;
  std::vector<void*> pointers;
  for (server::Parameter& parameter : parameters) {
    std::visit([&](auto& value) { pointers.push_back(&value); }, parameter.value);
  }
  Numbers results;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    results.push_back(known.compute(xs[i], ys[i], pointers.data()));
  }
  return results;
}

// One client: a context of its own, and every formula.
void Work(Device device, Server* server) {
  const SharedContext context = SharedContext::Create(device);
  if (!CHECK_OK(cuguest::ToStatus(context))) return;
  for (const Known& known : Formulas()) {
    const Numbers xs = Ramp(2);
    const Numbers ys = Ramp(4);
    const absl::StatusOr<Numbers> results =
        server->Evaluate(context.context(), known.formula, xs, ys);
    if (CHECK_OK(results.status())) CHECK(*results == OnTheHost(known, xs, ys));
  }
}

void ManyClients(Device device, Server* server) {
  PrintScene("Four clients, in contexts of their own, send formulas");
  constexpr std::size_t kClients = 4;
  const int before = support::ExitCode();
  std::vector<std::thread> clients;
  while (clients.size() < kClients) clients.emplace_back(&Work, device, server);
  for (std::thread& client : clients) client.join();

  const char* const verdict = support::ExitCode() == before ? "right" : "wrong";
  for (const Known& known : Formulas()) PrintRow(known.formula.name, verdict, known.formula.text);
  const std::size_t compiled = server->CountCompiled();
  PrintRow("compiled", std::to_string(compiled),
           "of " + std::to_string(kClients * Formulas().size()) + " that were sent");
  CHECK(compiled == Formulas().size());
}

void Refused(const Formula& formula, const SharedContext& context, const char* reason,
             Server* server) {
  const absl::Status status =
      server->Evaluate(context.context(), formula, Ramp(1), Ramp(1)).status();
  PrintRow(formula.text, "refused");
  support::PrintLines(std::string(status.message()));
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(std::string(status.message()).find(reason) != std::string::npos);
}

absl::Status WrongFormulas(Device device, Server* server) {
  PrintScene("Wrong formulas");
  CUGUEST_ASSIGN_OR_RETURN(const SharedContext context, SharedContext::Create(device));
  Refused({"undefined", "x + z", {}}, context, "identifier \"z\" is undefined", server);
  Refused({"malformed", "x +", {}}, context, "expected an expression", server);
  return absl::OkStatus();
}

absl::Status Demonstrate(const cuguest::Driver&, Device device) {
  RegisterHostFunctions();
  Server server;
  ManyClients(device, &server);
  return WrongFormulas(device, &server);
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
