// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cudasim/stack_probe.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <type_traits>
#include <utility>

namespace cudasim {
namespace {

// The functions of the process's driver that the probe calls: of the versions that <cuda.h> means
// by these names, which every driver has.
class Driver {
 public:
  static const Driver& Get() {
    static const Driver driver;
    return driver;
  }

  bool exists() const { return exists_; }

  bool CurrentIsDead(CUcontext current) const {
    unsigned long long id = 0;
    if (ctx_get_id != nullptr) return ctx_get_id(nullptr, &id) == CUDA_ERROR_CONTEXT_IS_DESTROYED;
    unsigned version = 0;
    return ctx_get_api_version(current, &version) == CUDA_ERROR_INVALID_CONTEXT;
  }

  // 0 below CUDA 12.0. Of its handle: for the current context of a lost device, as null, the driver
  // returns the device's error.
  unsigned long long IdOf(CUcontext context) const {
    unsigned long long id = 0;
    if (ctx_get_id != nullptr) static_cast<void>(ctx_get_id(context, &id));
    return id;
  }

  // -1 if it has none to tell.
  CUdevice CurrentDevice() const {
    CUdevice device = -1;
    return ctx_get_device(&device) == CUDA_SUCCESS ? device : -1;
  }

  decltype(&cuCtxGetCurrent) ctx_get_current = nullptr;
  decltype(&cuCtxPopCurrent) ctx_pop_current = nullptr;
  decltype(&cuCtxPushCurrent) ctx_push_current = nullptr;
  decltype(&cuCtxGetFlags) ctx_get_flags = nullptr;
  decltype(&cuDeviceGetCount) device_get_count = nullptr;
  decltype(&cuDevicePrimaryCtxGetState) device_primary_ctx_get_state = nullptr;

 private:
  Driver() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto find = [library](auto* function, const char* name) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
      return *function != nullptr;
    };
    int version = 0;
    decltype(&cuDriverGetVersion) get_version = nullptr;
    exists_ =
        find(&ctx_get_current, "cuCtxGetCurrent") && find(&ctx_pop_current, "cuCtxPopCurrent_v2") &&
        find(&ctx_push_current, "cuCtxPushCurrent_v2") && find(&ctx_get_flags, "cuCtxGetFlags") &&
        find(&ctx_get_api_version, "cuCtxGetApiVersion") &&
        find(&ctx_get_device, "cuCtxGetDevice") && find(&device_get_count, "cuDeviceGetCount") &&
        find(&device_primary_ctx_get_state, "cuDevicePrimaryCtxGetState") &&
        find(&get_version, "cuDriverGetVersion") && get_version(&version) == CUDA_SUCCESS;
    // A simulated driver that claims to be older still exports it.
    if (version >= 12000) find(&ctx_get_id, "cuCtxGetId");
  }

  decltype(&cuCtxGetApiVersion) ctx_get_api_version = nullptr;
  decltype(&cuCtxGetDevice) ctx_get_device = nullptr;
  decltype(&cuCtxGetId) ctx_get_id = nullptr;
  bool exists_ = false;
};

std::vector<StackProbe::Primary> Primaries(const Driver& driver) {
  std::vector<StackProbe::Primary> primaries;
  int count = 0;
  if (driver.device_get_count(&count) != CUDA_SUCCESS) return primaries;
  for (int device = 0; device < count; ++device) {
    unsigned flags = 0;
    int active = 0;
    static_cast<void>(driver.device_primary_ctx_get_state(device, &flags, &active));
    primaries.push_back({active != 0, flags});
  }
  return primaries;
}

// Each entry that is pushed back was alive a moment ago, on this thread. A destroyed one stays: a
// driver accepts its handle and corrupts its heap.
bool WalkStack(const Driver& driver, std::vector<StackProbe::Entry>* entries) {
  bool cut = false;
  CUcontext current = nullptr;
  while (driver.ctx_get_current(&current) == CUDA_SUCCESS && current != nullptr) {
    cut = driver.CurrentIsDead(current);
    if (cut) break;
    const StackProbe::Entry entry{current, driver.IdOf(current), driver.CurrentDevice()};
    CUcontext popped = nullptr;
    if (driver.ctx_pop_current(&popped) != CUDA_SUCCESS) break;
    entries->push_back(entry);
  }
  std::reverse(entries->begin(), entries->end());
  for (const StackProbe::Entry& entry : *entries) {
    if (driver.ctx_push_current(entry.context) == CUDA_SUCCESS) continue;
    std::fprintf(stderr, "cudasim: the stack probe could not put context %p back\n",
                 static_cast<void*>(entry.context));
    std::abort();
  }
  return cut;
}

void Describe(std::ostream& out, const std::vector<StackProbe::Entry>& stack) {
  if (stack.empty()) out << "(empty)";
  for (std::size_t i = 0; i < stack.size(); ++i) {
    out << (i == 0 ? "" : " ") << stack[i].context << "#" << stack[i].id;
  }
}

const char* Activity(const StackProbe::Primary& primary) {
  return primary.active ? "active" : "inactive";
}

}  // namespace

StackProbe StackProbe::Take() {
  StackProbe probe;
  const Driver& driver = Driver::Get();
  if (!driver.exists()) return probe;
  probe.cut_ = WalkStack(driver, &probe.stack_);
  probe.primaries_ = Primaries(driver);
  if (!probe.stack_.empty()) static_cast<void>(driver.ctx_get_flags(&probe.flags_));
  return probe;
}

std::string StackProbe::Difference(const StackProbe& later) const {
  std::ostringstream out;
  if (!(stack_ == later.stack_) || cut_ != later.cut_) {
    out << "the stack of contexts (bottom first, handle#id)\n  was ";
    Describe(out, stack_);
    out << (cut_ ? " on a destroyed context" : "") << "\n  is  ";
    Describe(out, later.stack_);
    out << (later.cut_ ? " on a destroyed context" : "") << "\n";
  }
  if (current() == later.current() && flags_ != later.flags_) {
    out << "the flags of the current context were " << flags_ << " and are " << later.flags_
        << "\n";
  }
  constexpr Primary kUnknown{false, 0};
  for (std::size_t i = 0; i < std::max(primaries_.size(), later.primaries_.size()); ++i) {
    const Primary before = i < primaries_.size() ? primaries_[i] : kUnknown;
    const Primary after = i < later.primaries_.size() ? later.primaries_[i] : kUnknown;
    if (before == after) continue;
    out << "the primary context of device " << i << " was " << Activity(before) << " (flags "
        << before.flags << ") and is " << Activity(after) << " (flags " << after.flags << ")\n";
  }
  return out.str();
}

std::string StackProbe::Draw(const Name& name) const {
  std::string line = cut_ ? "... [dead]" : "";
  for (const Entry& entry : stack_) {
    line += (line.empty() ? "[" : " [") + name(entry.context) + "]";
  }
  return line.empty() ? "(empty)" : line + "<";
}

UndisturbedScope::UndisturbedScope(Fail fail, const char* file, int line)
    : fail_(std::move(fail)), file_(file), line_(line), before_(StackProbe::Take()) {}

UndisturbedScope::~UndisturbedScope() {
  const std::string difference = before_.Difference(StackProbe::Take());
  if (difference.empty()) return;
  std::ostringstream message;
  message << file_ << ":" << line_ << ": the scope disturbed its caller's CUDA state:\n"
          << difference;
  if (fail_ != nullptr) {
    fail_(message.str());
    return;
  }
  std::fputs(message.str().c_str(), stderr);
  std::abort();
}

}  // namespace cudasim
