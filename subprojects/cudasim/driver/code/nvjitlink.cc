// SPDX-License-Identifier: Apache-2.0

#include "driver/code/nvjitlink.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>

#include "driver/environment.h"

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

// The functions by their unversioned names, which every version exports.
struct Api {
  int (*create)(void** handle, std::uint32_t count, const char** options) = nullptr;
  int (*destroy)(void** handle) = nullptr;
  int (*add_data)(void* handle, int kind, const void* data, size_t size,
                  const char* name) = nullptr;
  int (*complete)(void* handle) = nullptr;
  int (*cubin_size)(void* handle, size_t* size) = nullptr;
  int (*cubin)(void* handle, void* cubin) = nullptr;
  int (*error_log_size)(void* handle, size_t* size) = nullptr;
  int (*error_log)(void* handle, char* log) = nullptr;
  int (*info_log_size)(void* handle, size_t* size) = nullptr;
  int (*info_log)(void* handle, char* log) = nullptr;
};

// The library's own destructors run at exit, before handlers that were registered
// before it was loaded.
std::atomic<bool> has_ended{false};

void* OpenLibrary() {
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  const char* chosen = Setting("NVJITLINK");
  if (chosen != nullptr) return *chosen == '\0' ? nullptr : dlopen(chosen, kFlags);
  for (const char* name : {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so",
                           "/usr/local/cuda/lib64/libnvJitLink.so"}) {
    void* library = dlopen(name, kFlags);
    if (library != nullptr) return library;
  }
  return nullptr;
}

template <typename Function>
bool Resolve(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// Null unless all of it is there.
const Api* LoadApi() {
  void* library = OpenLibrary();
  if (library == nullptr) return nullptr;
  static Api api;
  const bool whole = Resolve(library, "nvJitLinkCreate", &api.create) &&
                     Resolve(library, "nvJitLinkDestroy", &api.destroy) &&
                     Resolve(library, "nvJitLinkAddData", &api.add_data) &&
                     Resolve(library, "nvJitLinkComplete", &api.complete) &&
                     Resolve(library, "nvJitLinkGetLinkedCubinSize", &api.cubin_size) &&
                     Resolve(library, "nvJitLinkGetLinkedCubin", &api.cubin) &&
                     Resolve(library, "nvJitLinkGetErrorLogSize", &api.error_log_size) &&
                     Resolve(library, "nvJitLinkGetErrorLog", &api.error_log) &&
                     Resolve(library, "nvJitLinkGetInfoLogSize", &api.info_log_size) &&
                     Resolve(library, "nvJitLinkGetInfoLog", &api.info_log);
  if (!whole) return nullptr;
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

std::string ReadLog(void* handle, int (*get_size)(void*, size_t*), int (*get)(void*, char*)) {
  size_t size = 0;
  if (get_size(handle, &size) != 0 || size == 0) return {};
  std::string log(size + 1, '\0');
  if (get(handle, &log[0]) != 0) return {};
  return WithoutOwnLines(log.c_str());
}

}  // namespace

bool NvJitLink::IsThere() { return TheApi() != nullptr; }

std::unique_ptr<NvJitLink> NvJitLink::Create(const std::vector<std::string>& options) {
  const Api* api = TheApi();
  if (api == nullptr) return nullptr;
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  const Turn turn;
  void* handle = nullptr;
  const int code = api->create(&handle, static_cast<std::uint32_t>(texts.size()), texts.data());
  // After a failure even to destroy what it gave crashes.
  return std::unique_ptr<NvJitLink>(code == 0 ? new NvJitLink(handle) : nullptr);
}

NvJitLink::~NvJitLink() {
  const Api* api = TheApi();
  if (api == nullptr) return;
  const Turn turn;
  api->destroy(&handle_);
}

NvJitLink::Result NvJitLink::Add(Input kind, std::string_view data, const std::string& name) {
  const Api* api = TheApi();
  if (api == nullptr) return Result::kOther;
  const Turn turn;
  names_.push_back(name);
  const int code = api->add_data(handle_, static_cast<int>(kind), data.data(), data.size(),
                                 names_.back().c_str());
  if (code == 0) return Result::kSuccess;
  return code == static_cast<int>(Result::kWrongKind) ? Result::kWrongKind : Result::kOther;
}

NvJitLink::Result NvJitLink::Complete() {
  const Api* api = TheApi();
  if (api == nullptr) return Result::kOther;
  const Turn turn;
  return api->complete(handle_) == 0 ? Result::kSuccess : Result::kOther;
}

std::string NvJitLink::Cubin() const {
  const Api* api = TheApi();
  if (api == nullptr) return {};
  const Turn turn;
  size_t size = 0;
  if (api->cubin_size(handle_, &size) != 0) return {};
  std::string cubin(size, '\0');
  return api->cubin(handle_, &cubin[0]) == 0 ? cubin : std::string();
}

std::string NvJitLink::ErrorLog() const {
  const Api* api = TheApi();
  if (api == nullptr) return {};
  const Turn turn;
  return ReadLog(handle_, api->error_log_size, api->error_log);
}

std::string NvJitLink::InfoLog() const {
  const Api* api = TheApi();
  if (api == nullptr) return {};
  const Turn turn;
  return ReadLog(handle_, api->info_log_size, api->info_log);
}

}  // namespace cudasim::driver
