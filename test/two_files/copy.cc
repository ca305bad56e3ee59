// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library that took the core by copying, CORE. Its functions are those of a plugin
// (test/process/plugin.h) that is loaded beside other copies.

#include CORE

#define PLUGIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

void* Keep(cuguest::SharedContext made) {
  return made.ok() ? new cuguest::SharedContext(std::move(made)) : nullptr;
}
cuguest::SharedContext& At(void* reference) {
  return *static_cast<cuguest::SharedContext*>(reference);
}

}  // namespace

PLUGIN_EXPORT void* PluginCreate() {
  return Keep(cuguest::SharedContext::Create(cuguest::Device::Borrow(0)));
}
PLUGIN_EXPORT void* PluginAttach(CUcontext context) {
  return Keep(cuguest::SharedContext::Attach(context));
}
PLUGIN_EXPORT CUcontext PluginGet(void* reference) { return At(reference).get(); }
PLUGIN_EXPORT unsigned long long PluginUseCount(void* reference) {
  return At(reference).use_count();
}
PLUGIN_EXPORT bool PluginDetach(void* reference) {
  const bool is_clean = At(reference).Release().ok();
  delete &At(reference);
  return is_clean;
}

// Enters `context`, lets `callee` run, leaves. The guard's result.
PLUGIN_EXPORT CUresult PluginCall(CUcontext context, void (*callee)(void*), void* argument) {
  const cuguest::ContextGuard guard(context);
  if (guard.ok()) callee(argument);
  return guard.result();
}
PLUGIN_EXPORT unsigned long long PluginIncidents() { return cuguest::IncidentCount(); }
