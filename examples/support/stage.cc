// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/support/stage.h"

#include <dlfcn.h>

#include <cstdio>

#include "cuguest/primary_context.h"
#include "cuguest/status.h"

namespace support {

using cuguest::Device;
using cuguest::PrimaryContext;

void* FindSymbol(const char* symbol) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? nullptr : dlsym(library, symbol);
}

Stage::Stage(const cuguest::ObjectDriver& driver, Device device,
             const std::vector<std::string>& names)
    : driver_(driver), device_(device) {
  Set({});
  for (const std::string& name : names) {
    if (name != "P") {
      Create(name);
      continue;
    }
    const PrimaryContext primary = PrimaryContext::Retain(device);
    if (CHECK_OK(cuguest::ToStatus(primary))) Name(name, primary.get());
  }
}

Stage::~Stage() {
  Set({});
  for (const std::string& name : created_) driver_.CtxDestroy((*this)[name]);
}

CUcontext Stage::operator[](const std::string& name) const {
  const auto found = named_.find(name);
  return found == named_.end() ? nullptr : found->second;  // it could not be created
}

void Stage::Name(const std::string& name, CUcontext context) {
  for (auto& [other, handle] : named_) {
    if (handle == context) handle = nullptr;  // of one that was destroyed
  }
  named_[name] = context;
}

void Stage::Create(const std::string& name) {
  CUcontext context = nullptr;
  if (!SUCCEEDS(driver_.CtxCreate(&context, 0, device_.get()))) return;
  Name(name, context);
  created_.insert(name);
  SUCCEEDS(driver_.CtxPopCurrent(&context));  // cuCtxCreate left it current
}

void Stage::Destroy(const std::string& name) {
  if (created_.erase(name) == 1) SUCCEEDS(driver_.CtxDestroy((*this)[name]));
}

void Stage::Set(const std::vector<std::string>& names) const {
  CUcontext top = nullptr;  // asked for, since a pop that fails is a line in the driver's log
  while (driver_.CtxGetCurrent(&top) == CUDA_SUCCESS && top != nullptr) driver_.CtxPopCurrent(&top);
  for (const std::string& name : names) SUCCEEDS(driver_.CtxPushCurrent((*this)[name]));
}

std::string Stage::Draw() const {
  return cuguest::testing::StackProbe::Take().Draw([this](CUcontext context) -> std::string {
    for (const auto& [name, handle] : named_) {
      if (handle == context) return name;
    }
    return "?";
  });
}

bool Stage::Shows(const std::string& when, const std::string& expected,
                  const std::string& remark) const {
  const std::string picture = Draw();
  const bool names_p = remark == "P is active" || remark == "P is inactive";
  const std::string shown = !names_p ? remark : IsActive(device_) ? "P is active" : "P is inactive";
  PrintRow(when, picture, shown);
  return picture == expected && shown == remark;
}

Undisturbed::Undisturbed(const char* file, int line)
    : scope_([=](const std::string& difference) {
        Check(false, "the host was left undisturbed", file, line);
        std::fprintf(stderr, "%s\n", difference.c_str());
      }) {}

bool IsActive(Device device) {
  const PrimaryContext::State state = PrimaryContext::Query(device);
  return CHECK_OK(cuguest::ToStatus(state)) && state.active;
}

CUresult ResetDevice(Device device) {
  const auto reset = DRIVER(cuDevicePrimaryCtxReset);
  return reset == nullptr ? CUDA_ERROR_NOT_FOUND : reset(device.get());
}

std::vector<float> Ramp(int step) {
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i * step));
  return values;
}

}  // namespace support
