// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "picture.h"

#include <string>

#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"

const char* PictureStatus() {
  static std::string text;
  const absl::StatusOr<const cuguest::Driver*> driver = cuguest::Driver::Get();
  // No context is at hand here, so the guard refuses, whatever the driver.
  const cuguest::ContextGuard guard(CUcontext{nullptr});
  text =
      "driver: " + driver.status().ToString() + "\nguard: " + cuguest::ToStatus(guard).ToString();
  return text.c_str();
}
