// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries that embed cuguest and share contexts: fixtures/plugin.cc, and those of other releases,
// which have the same functions.

#ifndef CUGUEST_TEST_PROCESS_PLUGIN_H_
#define CUGUEST_TEST_PROCESS_PLUGIN_H_

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "test/support/files.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace cuguest_test {

class Plugin {
 public:
  explicit Plugin(const std::string& name) : name_(name) {
    library_ = dlopen(PathOf(name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) std::printf("%s\n", dlerror());
    CHECK(library_ != nullptr);
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  ~Plugin() { CHECK(dlclose(library_) == 0); }

  static std::string PathOf(const std::string& name) { return FindBeside("test/" + name + ".so"); }
  static bool IsLoaded(const std::string& name) {
    void* handle = dlopen(PathOf(name).c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) dlclose(handle);
    return handle != nullptr;
  }

  const std::string& name() const { return name_; }
  void* Create() const { return Call<void* (*)()>("PluginCreate")(); }
  void* Attach(CUcontext context) const {
    return Call<void* (*)(CUcontext)>("PluginAttach")(context);
  }
  CUcontext Get(void* reference) const {
    return Call<CUcontext (*)(void*)>("PluginGet")(reference);
  }
  unsigned long long UseCount(void* reference) const {
    return Call<unsigned long long (*)(void*)>("PluginUseCount")(reference);
  }
  bool Detach(void* reference) const { return Call<bool (*)(void*)>("PluginDetach")(reference); }
  void CallAtUnload(void (*call)()) const {
    Call<void (*)(void (*)())>("PluginCallAtUnload")(call);
  }
  bool Enter(CUcontext context) const { return Call<bool (*)(CUcontext)>("PluginEnter")(context); }
  bool MakeValue(CUcontext context) const {
    return Call<bool (*)(CUcontext)>("PluginMakeValue")(context);
  }
  bool KeepValue(CUcontext context, int* ended, bool closes) const {
    return Call<bool (*)(CUcontext, int*, bool)>("PluginKeepValue")(context, ended, closes);
  }
  bool Bind(CUcontext context) const { return Call<bool (*)(CUcontext)>("PluginBind")(context); }
  std::string CheckSharing() const {
    char text[2000] = {};
    Call<void (*)(char*, size_t)>("PluginCheckSharing")(text, sizeof(text));
    return text;
  }

  template <typename Function>
  Function Call(const char* name) const {
    void* symbol = dlsym(library_, name);
    CHECK(symbol != nullptr);
    return reinterpret_cast<Function>(symbol);
  }

 private:
  std::string name_;
  void* library_;
};

// Tells whether a context was destroyed. The context is an entry of this thread's stack meanwhile,
// so that the driver keeps its memory.
class Watch {
 public:
  explicit Watch(CUcontext context) : context_(context) {
    CHECK(RAW(cuCtxPushCurrent)(context) == CUDA_SUCCESS);
  }
  ~Watch() {
    CUcontext popped = nullptr;
    CHECK(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
    CHECK(popped == context_);  // the last holder did not touch this stack
  }
  bool IsAlive() const {
    unsigned long long id = 0;
    return RAW(cuCtxGetId)(context_, &id) == CUDA_SUCCESS;
  }

 private:
  CUcontext context_;
};

// One library of each name creates a context, the others attach to it, and they detach and are
// closed in every order: all see the same count, and the last holder destroys the context.
inline void DetachInEveryOrder(const std::vector<std::string>& names) {
  std::vector<size_t> leaving(names.size());
  std::iota(leaving.begin(), leaving.end(), size_t{0});
  do {
    std::vector<std::unique_ptr<Plugin>> plugins;
    for (const std::string& name : names) plugins.push_back(std::make_unique<Plugin>(name));
    std::vector<void*> references = {plugins[0]->Create()};
    CHECK(references[0] != nullptr);
    const CUcontext context = plugins[0]->Get(references[0]);
    for (size_t i = 1; i < plugins.size(); ++i) references.push_back(plugins[i]->Attach(context));
    const Watch watch(context);
    for (size_t left = 0; left < leaving.size(); ++left) {
      for (size_t i = left; i < leaving.size(); ++i) {
        CHECK(references[leaving[i]] != nullptr);
        CHECK(plugins[leaving[i]]->UseCount(references[leaving[i]]) == leaving.size() - left);
      }
      CHECK(watch.IsAlive());
      CHECK(plugins[leaving[left]]->Detach(references[leaving[left]]));
      plugins[leaving[left]].reset();
    }
    CHECK(!watch.IsAlive());
  } while (std::next_permutation(leaving.begin(), leaving.end()));
}

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_PROCESS_PLUGIN_H_
