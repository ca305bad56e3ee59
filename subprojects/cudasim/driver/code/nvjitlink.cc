// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/code/nvjitlink.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>

#include "driver/environment.h"
#include "driver/panic.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDASIM_LEAKS_ARE_LOOKED_FOR
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CUDASIM_LEAKS_ARE_LOOKED_FOR
#endif
#ifdef CUDASIM_LEAKS_ARE_LOOKED_FOR
#include <sanitizer/lsan_interface.h>
#endif

namespace cudasim::driver {
namespace {

using Api = cudaimage::NvJitLinkTable;

// The library's own destructors run at exit, before handlers that were registered
// before it was loaded.
std::atomic<bool> has_ended{false};

bool Load(Api* api) {
  const char* chosen = Setting("NVJITLINK");
  if (chosen != nullptr && *chosen == '\0') return false;
  if (chosen != nullptr) {
    const cudaimage::Status loaded = Api::Load(chosen, api);
    if (!loaded.ok()) Panic("CUDASIM_NVJITLINK=%s: %s", chosen, loaded.message().c_str());
    return true;
  }
  for (const char* name : {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so",
                           "/usr/local/cuda/lib64/libnvJitLink.so"}) {
    if (Api::Load(name, api).ok()) return true;
  }
  return false;
}

// Null unless all of it is there.
const Api* LoadApi() {
  static Api api;
  if (!Load(&api)) return nullptr;
  std::atexit([] { has_ended = true; });
  return &api;
}

const Api* TheApi() {
  static const Api* const api = LoadApi();
  return has_ended ? nullptr : api;
}

std::mutex& TurnMutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

// One call at a time. What nvJitLink never frees (after each text that it cannot compile,
// some) is no leak of this project, to who looks for leaks.
class Turn {
 public:
  Turn() : lock_(TurnMutex()) {}

 private:
  std::lock_guard<std::mutex> lock_;
#ifdef CUDASIM_LEAKS_ARE_LOOKED_FOR
  __lsan::ScopedDisabler not_looked_for_;
#endif
};

// The lines of nvJitLink itself begin with "ERROR".
std::string WithoutOwnLines(std::string_view log) {
  std::string lines;
  while (!log.empty()) {
    const size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    if (line.substr(0, 5) == "ERROR" || line.find('\0') != std::string_view::npos) continue;
    if (!lines.empty()) lines += '\n';
    lines += line;
  }
  return lines;
}

}  // namespace

bool NvJitLink::IsThere() { return TheApi() != nullptr; }

std::unique_ptr<NvJitLink> NvJitLink::Create(const std::vector<std::string>& options) {
  const Api* api = TheApi();
  if (api == nullptr) return nullptr;
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  const Turn turn;
  cudaimage::NvJitLinkState* handle = nullptr;
  const int code = api->Create(&handle, static_cast<std::uint32_t>(texts.size()), texts.data());
  // After a failure even to destroy what it gave crashes.
  return std::unique_ptr<NvJitLink>(code == 0 ? new NvJitLink(handle) : nullptr);
}

NvJitLink::~NvJitLink() {
  const Api* api = TheApi();
  if (api == nullptr) return;
  const Turn turn;
  api->Destroy(&handle_);
}

NvJitLink::Result NvJitLink::Add(Input kind, std::string_view data, const std::string& name) {
  const Api* api = TheApi();
  if (api == nullptr) return Result::kOther;
  const Turn turn;
  names_.push_back(name);
  const int code = api->AddData(handle_, static_cast<int>(kind), data.data(), data.size(),
                                names_.back().c_str());
  if (code == 0) return Result::kSuccess;
  return code == static_cast<int>(Result::kWrongKind) ? Result::kWrongKind : Result::kOther;
}

NvJitLink::Result NvJitLink::Complete() {
  const Api* api = TheApi();
  if (api == nullptr) return Result::kOther;
  const Turn turn;
  return api->Complete(handle_) == 0 ? Result::kSuccess : Result::kOther;
}

std::string NvJitLink::Cubin() const {
  const Api* api = TheApi();
  if (api == nullptr) return {};
  const Turn turn;
  size_t size = 0;
  if (api->GetLinkedCubinSize(handle_, &size) != 0) return {};
  std::string cubin(size, '\0');
  return api->GetLinkedCubin(handle_, &cubin[0]) == 0 ? cubin : std::string();
}

std::string NvJitLink::ErrorLog() const {
  const Api* api = TheApi();
  if (api == nullptr) return {};
  const Turn turn;
  return WithoutOwnLines(Api::Log(handle_, api->GetErrorLogSize, api->GetErrorLog));
}

std::string NvJitLink::InfoLog() const {
  const Api* api = TheApi();
  if (api == nullptr) return {};
  const Turn turn;
  return WithoutOwnLines(Api::Log(handle_, api->GetInfoLogSize, api->GetInfoLog));
}

}  // namespace cudasim::driver
