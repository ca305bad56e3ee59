// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The objects that elsewhere_test.cc ends elsewhere: a row for each kind, and what they are made
// of.

#ifndef CUGUEST_TEST_PROCESS_ELSEWHERE_H_
#define CUGUEST_TEST_PROCESS_ELSEWHERE_H_

#include <cuda.h>

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/stream.h"
#include "cuguest/per_context.h"
#include "cuguest/status.h"

namespace cuguest_elsewhere {

using cuguest::ContextRef;
using cuguest::Stream;

class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  // By the function that says what came of it.
  virtual void End() = 0;
  // To another address, where it can be moved.
  virtual void Move() = 0;
};

// nullptr where there is none, as in a forked child.
using Made = std::unique_ptr<Object>;

using Cache = cuguest::PerContext<Stream>;  // whose making and ending call the driver

absl::StatusOr<Stream> MakeStream(const ContextRef& context);

// What the objects are made of, and what threads share. Never ended but in a child.
struct World {
  World();

  ContextRef home;
  ContextRef other;
  CUcontext callers;
  CUcontext others;
  ContextRef peer;  // of another device, if there is one
  Stream stream;
  std::optional<Cache> cache{std::in_place};
  std::optional<cuguest::Module> module;
};

struct Row {
  const char* name;
  Made (*make)(World& w);
  unsigned scopes = 0;  // that are bound to the thread that made it
  int version = 0;      // of the driver
  int devices = 1;
  unsigned reports_in_child = 0;  // of one that ends on another thread of a child
};

const std::vector<Row>& Rows();

}  // namespace cuguest_elsewhere

#endif  // CUGUEST_TEST_PROCESS_ELSEWHERE_H_
