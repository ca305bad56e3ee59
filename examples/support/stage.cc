// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/support/stage.h"

#include <utility>

#include "absl/status/statusor.h"
#include "cuguest/error.h"
#include "cuguest/status.h"

namespace support {

Stage::Stage(const cuguest::Driver& driver, cuguest::Device device,
             const std::vector<std::string>& names)
    : driver_(driver), device_(device), stack_(driver, {}) {
  for (const std::string& name : names) Create(name);
}

void Stage::Create(const std::string& name) {
  absl::StatusOr<HostContext> context = HostContext::Create(driver_, device_);
  if (!CHECK_OK(context.status())) return;
  Name(name, context->get());
  created_.insert_or_assign(name, *std::move(context));
}

CUcontext Stage::operator[](const std::string& name) const {
  const auto found = named_.find(name);
  return found == named_.end() ? nullptr : found->second;  // it could not be created
}

void Stage::Set(const std::vector<std::string>& names) {
  std::vector<CUcontext> contexts;
  for (const std::string& name : names) contexts.push_back((*this)[name]);
  stack_.Set(contexts);
}

void Stage::Name(const std::string& name, CUcontext context) {
  named_[name] = context;
  cast_.Name(name, context);
}

void Stage::Destroy(const std::string& name) { created_.erase(name); }

void Stage::Renew(const std::string& name) {
  created_.at(name).Leak();
  Create(name);
}

bool Stage::Shows(const std::string& when, const std::string& expected,
                  const std::string& remark) const {
  const std::string picture = Draw();
  PrintRow(when, picture, remark);
  return picture == expected;
}

void PrintRefusal(const std::string& when, const absl::Status& status) {
  const auto code = cuguest::CodeOf(status);
  PrintRow(when, status.ok() ? "done" : "refused", code ? cuguest::ErrorName(*code) : "");
  PrintParagraph(std::string(status.message()));
}

}  // namespace support
