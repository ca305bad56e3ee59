// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The border values of the parameters of C++, for borders.h.

#ifndef CUGUEST_TEST_FAULTS_CC_PARAMETERS_H_
#define CUGUEST_TEST_FAULTS_CC_PARAMETERS_H_

#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/device.h"
#include "cuguest/objects/stream.h"
#include "cuguest/status.h"
#include "test/faults/borders.h"
#include "test/support/raw_driver.h"

namespace cuguest_faults {

using cuguest::ContextRef;
using cuguest::Device;
using cuguest::StreamRef;

enum : int {
  kCancelled = static_cast<int>(absl::StatusCode::kCancelled),
  kInternal = static_cast<int>(absl::StatusCode::kInternal),
  kInvalid = static_cast<int>(absl::StatusCode::kInvalidArgument),
  kNotFound = static_cast<int>(absl::StatusCode::kNotFound),
  kNoPermission = static_cast<int>(absl::StatusCode::kPermissionDenied),
  kExhausted = static_cast<int>(absl::StatusCode::kResourceExhausted),
  kPrecondition = static_cast<int>(absl::StatusCode::kFailedPrecondition),
  kOutOfRange = static_cast<int>(absl::StatusCode::kOutOfRange),
  kUnimplemented = static_cast<int>(absl::StatusCode::kUnimplemented),
  kUnavailable = static_cast<int>(absl::StatusCode::kUnavailable),
};

inline Everywhere AsksNobody() { return {{0}, {0}, {0}, {0}, {0}}; }
inline Everywhere AsksDriver() {
  return {{0}, {kPrecondition}, {kNoPermission}, {0}, {kCancelled}};
}
inline Everywhere GivesBack() { return {{0}, {kPrecondition}, {kNoPermission}, {0}, {0}}; }
// The thread is not the one that it is bound to.
inline Everywhere UsesScope() {
  return {{0}, {kPrecondition}, {kPrecondition}, {kPrecondition}, {kCancelled}};
}
inline Everywhere EndsScope() {
  return {{0}, {0}, Expected{kUnavailable}.Reported(), Expected{kUnavailable}.Reported(), {0}};
}

template <typename T>
Value<T> Is(const std::string& name, T value, Expected expected) {
  return {name, [value](Given&) { return value; }, std::move(expected)};
}
template <typename T>
Parameter<T> Among(T valid, std::vector<Value<T>> borders) {
  return {[valid](Given&) { return valid; }, std::move(borders)};
}

inline Parameter<const Things*> TheThings() {
  return {[](Given& given) { return &given.things; }, {}};
}

inline ContextRef DestroyedContext() {
  cuguest_test::OwnContext context;
  const auto ref = ContextRef::Borrow(context.get());
  OK(RAW(cuCtxDestroy)(context.release()));
  return ref;
}

// Of a context that is worked in. `empty` is what is said of none.
inline Parameter<ContextRef> Ref(int empty = kPrecondition, int over = kPrecondition) {
  return {[](Given& given) { return given.things.home.ref(); },
          {Is("is empty", ContextRef(), {empty}),
           {"names a primary context that was reset",
            [](Given& given) { return given.things.ended; }, Expected{over}.ByDriver()},
           {"names a destroyed context", [](Given&) { return DestroyedContext(); },
            Expected{over}.ByDriver()}}};
}

// The handle of another must be alive.
inline Parameter<CUcontext> Handle(int null = kPrecondition) {
  return {[](Given& given) { return given.things.home.get(); },
          {Is<CUcontext>("is null", nullptr, {null})}};
}

inline Parameter<Device> ADevice() {
  const auto no_device = Expected{kNotFound};
  std::vector<Value<Device>> borders;
  for (const int none : {INT_MIN, -2, -1}) {
    borders.push_back(Is("is " + std::to_string(none), Device::Borrow(none), no_device));
  }
  for (const int none : {4711, INT_MAX}) {
    borders.push_back(
        Is("is " + std::to_string(none), Device::Borrow(none), Expected{kNotFound}.ByDriver()));
  }
  borders.push_back(Is("is 1", Device::Borrow(1), {0}));
  return Among(Device::Borrow(0), borders);
}

inline Parameter<cuguest::GuardMode> Mode() {
  return Among(cuguest::GuardMode::kElide,
               {Is("always pushes", cuguest::GuardMode::kAlwaysPush, {0})});
}

inline Parameter<cuguest::IfInactive> Creating(Expected refusing = {0, kPrecondition}) {
  return Among(cuguest::IfInactive::kCreate,
               {Is("refuses", cuguest::IfInactive::kRefuse, std::move(refusing))});
}

// The handle of another than a special one must be alive.
inline Parameter<CUstream> StreamHandle(Expected special) {
  return {[](Given& given) { return given.things.stream.get(); },
          {Is<CUstream>("is null", nullptr, special),
           Is<CUstream>("is the legacy one", CU_STREAM_LEGACY, special),
           Is<CUstream>("is the thread's own", CU_STREAM_PER_THREAD, special)}};
}

// What is of its context; a capture may forbid it.
inline Parameter<StreamRef> AStream(Expected capturing = {0}) {
  const auto special = [](CUstream stream) {
    return [stream](Given& given) { return StreamRef::Borrow(stream, given.things.home.ref()); };
  };
  return {
      [](Given& given) { return given.things.stream.ref(); },
      {Is("is empty", StreamRef(), {kInvalid}),
       Is("has no context", StreamRef::Borrow(nullptr, ContextRef()), {kInvalid, kPrecondition}),
       {"is the legacy one", special(CU_STREAM_LEGACY), {0}},
       {"is the thread's own", special(CU_STREAM_PER_THREAD), {0}},
       {"captures", [](Given& given) { return given.things.capturing.ref(); },
        std::move(capturing)},
       {"is of a context that was reset",
        [](Given& given) { return StreamRef::Borrow(CU_STREAM_LEGACY, given.things.ended); },
        Expected{kPrecondition}.ByDriver()}}};
}

// Bytes, or elements of `size` bytes, of which there are not as many.
inline Parameter<size_t> Count(size_t valid, size_t size, Expected none, Expected many,
                               Expected beyond) {
  std::vector<Value<size_t>> borders = {
      Is("is 0", size_t{0}, std::move(none)), Is("is 1", size_t{1}, {0}),
      Is("is the largest that there are bytes", SIZE_MAX / size, std::move(many))};
  if (size > 1) {
    borders.push_back(Is("is one more than there are bytes", SIZE_MAX / size + 1, beyond));
    borders.push_back(Is("is half of all", SIZE_MAX / 2 + 1, beyond));
    borders.push_back(Is("is the largest", SIZE_MAX, beyond));
  }
  return Among(valid, borders);
}

// An address in memory.
inline Parameter<CUdeviceptr> Address(const Expected& unknown, const Expected& inside) {
  const auto by_driver = Expected(unknown).ByDriver();
  const auto in_memory = [](size_t offset) {
    return [offset](Given& given) { return given.things.memories.device + offset; };
  };
  return {in_memory(0),
          {Is("is null", CUdeviceptr{0}, unknown),
           Is("is 1", CUdeviceptr{1}, by_driver),
           Is("is the largest", ~CUdeviceptr{0}, by_driver),
           {"is of host memory",
            [](Given& given) { return cuguest_test::AddressOf(given.Keep(0)); }, by_driver},
           {"is of freed memory", [](Given& given) { return given.things.freed; }, by_driver},
           {"is behind the memory",
            [](Given& given) { return given.things.memories.BehindDevice(); }, by_driver},
           {"is its last byte", in_memory(cuguest_test::kBytes - 1), inside}}};
}

// An object that is neither copied nor moved.
template <typename T>
using Makes = std::function<std::unique_ptr<T>(const Things&)>;
template <typename T>
std::function<T*(Given&)> Made(const Makes<T>& make) {
  return [make](Given& given) { return given.Keep(make(given.things))->get(); };
}

// One that can be moved, and holds nothing then, nor by default.
template <typename T>
Parameter<T*> Owner(std::function<T(const Things&)> make, const Expected& empty) {
  return {[make](Given& given) { return given.Keep(make(given.things)); },
          {{"is empty", [](Given& given) { return given.Keep(T()); }, empty},
           {"was moved from",
            [make](Given& given) {
              T* const from = given.Keep(make(given.things));
              given.Keep(T(std::move(*from)));
              return from;
            },
            empty}}};
}

template <typename T>
T ValueOf(T object) {
  BOOST_TEST_REQUIRE(object.ok(), ToStatus(object).ToString());
  return object;
}
template <typename T>
T ValueOf(absl::StatusOr<T> result) {
  BOOST_TEST_REQUIRE(result.ok(), result.status().ToString());
  return *std::move(result);
}

std::vector<Row> BordersOfCore();
std::vector<Row> BordersOfMemory();
std::vector<Row> BordersOfCode();
std::vector<Row> BordersOfBridge();
std::vector<Row> BordersOfLibraries();

}  // namespace cuguest_faults

#endif  // CUGUEST_TEST_FAULTS_CC_PARAMETERS_H_
