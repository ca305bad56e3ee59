// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk of borders over every function of c.h: see borders.h. Whatever a function says, the
// comment above its declaration names.

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "cuguest/c.h"
#include "subprojects/cudasim/test/support/child.h"
#include "test/faults/borders.h"
#include "test/faults/c_contracts.h"
#include "test/support/raw_driver.h"

namespace {

using namespace cuguest_faults;

// Codes of CUresult, as c.h numbers them.
enum : int {
  kInvalidValue = 1,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kNoPeer = 217,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kDestroyed = 709,
  kNotPermitted = 800,
  kNotSupported = 801,
};

constexpr const char* kAbsent = "is null";

// How each kind of storage begins and ends.
int BeginIn(CUcontext context, cuguest_guard* guard) {
  return cuguest_guard_enter(guard, context, CUGUEST_ELIDE, CUGUEST_HERE);
}
int BeginIn(CUcontext context, cuguest_thread_home* home) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  const int code = cuguest_ref_borrow(&ref, context);
  return code != 0 ? code : cuguest_thread_home_enter_ref(home, &ref, 0, CUGUEST_HERE);
}
int BeginIn(CUcontext context, cuguest_shared_context* shared) {
  return cuguest_shared_context_attach(shared, context);
}
int Begin(cuguest_guard* guard, const Things& things) { return BeginIn(things.home.get(), guard); }
int Begin(cuguest_no_context_guard* guard, const Things&) {
  return cuguest_no_context_guard_enter(guard, CUGUEST_HERE);
}
int Begin(cuguest_host_scope* scope, const Things&) {
  return cuguest_host_scope_enter(scope, CUGUEST_HERE);
}
int Begin(cuguest_capture_guard* guard, const Things&) {
  return cuguest_capture_guard_enter(guard, CUGUEST_CAPTURE_RELAXED, CUGUEST_HERE);
}
int Begin(cuguest_thread_home* home, const Things& things) {
  return BeginIn(things.home.get(), home);
}
int Begin(cuguest_primary_keeper* keeper, const Things& things) {
  CUGUEST_SCOPE(cuguest_acquired, acquired);
  const int code = cuguest_acquire_from_pointer(&acquired, things.memories.pool, CUGUEST_CREATE);
  return code != 0 ? code : cuguest_primary_keeper_keep(keeper, &acquired);
}
int Begin(cuguest_primary* primary, const Things&) { return cuguest_primary_retain(primary, 0); }
// Of the primary context, whatever is current.
int Begin(cuguest_acquired* acquired, const Things& things) {
  return cuguest_acquire_from_pointer(acquired, things.memories.pool, CUGUEST_CREATE);
}
int Begin(cuguest_shared_context* shared, const Things& things) {
  return BeginIn(things.home.get(), shared);
}
// A value is a number, for which no driver is called.
int MakeNumber(const cuguest_ref*, void* value, void*) {
  *static_cast<int*>(value) = 1;
  return 0;
}
void EndNumber(void*, void*) {}
const cuguest_per_context_type kNumbers = {sizeof(kNumbers), sizeof(int), 0,      &MakeNumber,
                                           &EndNumber,       nullptr,     nullptr};
int Begin(cuguest_per_context* cache, const Things& things) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  const int code = cuguest_ref_borrow(&ref, things.home.get());
  CUGUEST_SCOPE(cuguest_per_context_pin, pin);
  return code != 0 ? code : cuguest_per_context_get(cache, &kNumbers, &ref, &pin);
}
cuguest_per_context g_pinned_in = CUGUEST_INIT(cuguest_per_context);
int Begin(cuguest_per_context_pin* pin, const Things& things) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  const int code = cuguest_ref_borrow(&ref, things.home.get());
  return code != 0 ? code : cuguest_per_context_get(&g_pinned_in, &kNumbers, &ref, pin);
}
void Ignore(const cuguest_incident*, void*) {}
int Begin(cuguest_incident_listener* listener, const Things&) {
  return cuguest_incident_listener_register(listener, &Ignore, nullptr);
}

void End(cuguest_guard* guard) { cuguest_guard_cleanup(guard); }
void End(cuguest_no_context_guard* guard) { cuguest_no_context_guard_cleanup(guard); }
void End(cuguest_host_scope* scope) { cuguest_host_scope_cleanup(scope); }
void End(cuguest_capture_guard* guard) { cuguest_capture_guard_cleanup(guard); }
void End(cuguest_thread_home* home) { cuguest_thread_home_cleanup(home); }
void End(cuguest_primary* primary) { cuguest_primary_cleanup(primary); }
void End(cuguest_primary_keeper* keeper) { cuguest_primary_keeper_cleanup(keeper); }
void End(cuguest_acquired* acquired) { cuguest_acquired_cleanup(acquired); }
void End(cuguest_shared_context* shared) { cuguest_shared_context_cleanup(shared); }
void End(cuguest_per_context* cache) { cuguest_per_context_cleanup(cache); }
void End(cuguest_per_context_pin* pin) { cuguest_per_context_pin_cleanup(pin); }
void End(cuguest_incident_listener* listener) { cuguest_incident_listener_cleanup(listener); }

template <typename S>
S* OfSize(Given& given, size_t size) {
  S empty = CUGUEST_INIT(S);
  empty.size = size;
  return given.Keep(empty, [](S* storage) { End(storage); });
}
template <typename S>
S* Fresh(Given& given) {
  return OfSize<S>(given, sizeof(S));
}
// Where it is: it must not be copied.
template <typename S>
S* Begun(Given& given) {
  S* const storage = Fresh<S>(given);
  BOOST_TEST(Begin(storage, given.things) == 0);
  return storage;
}
template <typename S>
S* Ended(Given& given) {
  S* const storage = Begun<S>(given);
  End(storage);
  return storage;
}
template <typename S>
S* Copied(Given& given) {
  S copy;
  std::memcpy(&copy, Begun<S>(given), sizeof(S));
  return given.Keep(copy, [](S* storage) { End(storage); });
}
template <typename S>
S* BegunOfLaterRelease(Given& given) {
  S* const storage = Begun<S>(given);
  storage->size = SIZE_MAX;
  return storage;
}

// Its context is over, and current if it was.
template <typename S>
S* BegunInDestroyed(Given& given) {
  S* const storage = Fresh<S>(given);
  cuguest_test::OwnContext context;
  BOOST_TEST(BeginIn(context.get(), storage) == 0);
  std::thread([&] { OK(RAW(cuCtxDestroy)(context.release())); }).join();
  return storage;
}

template <typename S>
std::vector<Value<S*>> StorageBorders(Expected not_begun, Expected begun) {
  const auto of_size = [](size_t size) {
    return [size](Given& given) { return OfSize<S>(given, size); };
  };
  return {
      {kAbsent, [](Given&) -> S* { return nullptr; }, {kInvalidValue}},
      {"has room for its size alone", of_size(sizeof(size_t)), {kInvalidValue}},
      {"is of size 1", of_size(1), {kInvalidValue}},
      {"is of zeros alone", of_size(0), not_begun},
      {"has not begun", &Fresh<S>, not_begun},
      {"has not begun, of a later release", of_size(SIZE_MAX), not_begun},
      {"has ended", &Ended<S>, not_begun},
      {"is a copy", &Copied<S>, not_begun},
      {"has begun", &Begun<S>, begun},
      {"has begun, of a later release", &BegunOfLaterRelease<S>, begun},
  };
}

// Storage in which something begins; and in which something has begun.
template <typename S>
Parameter<S*> Begins() {
  return {&Fresh<S>, StorageBorders<S>({0}, {kIllegalState})};
}
template <typename S>
Parameter<S*> Uses() {
  return {&Begun<S>, StorageBorders<S>({kIllegalState}, {0})};
}
template <typename S>
Parameter<S*> Uses(Expected over) {
  Parameter<S*> parameter = Uses<S>();
  parameter.borders.push_back(
      {"is of a context that was destroyed", &BegunInDestroyed<S>, std::move(over)});
  return parameter;
}
template <typename S>
Parameter<const S*> Reads() {
  const Parameter<S*> uses = Uses<S>();
  Parameter<const S*> parameter = {uses.valid, {}};
  for (const Value<S*>& border : uses.borders) {
    parameter.borders.push_back({border.name, border.make, border.expected});
  }
  return parameter;
}

cuguest_ref RefTo(const cuguest::ContextRef& context) {
  return {sizeof(cuguest_ref), context.get(), context.id()};
}

cuguest::ContextRef Destroyed() {
  cuguest_test::OwnContext context;
  const auto ref = cuguest::ContextRef::Borrow(context.get());
  OK(RAW(cuCtxDestroy)(context.release()));
  return ref;
}

// A reference to a context that something is done to.
Parameter<const cuguest_ref*> Names() {
  using Ref = const cuguest_ref*;
  const auto changed = [](void (*change)(cuguest_ref*)) {
    return [change](Given& given) -> Ref {
      cuguest_ref* const ref = given.Keep(RefTo(given.things.home.ref()));
      change(ref);
      return ref;
    };
  };
  return {
      changed([](cuguest_ref*) {}),
      {
          {kAbsent, [](Given&) -> Ref { return nullptr; }, {kInvalidValue}},
          {"has no room for the id",
           changed([](cuguest_ref* r) { r->size = 16; }),
           {kInvalidValue}},
          {"is of size 1", changed([](cuguest_ref* r) { r->size = 1; }), {kInvalidValue}},
          {"is of a later release", changed([](cuguest_ref* r) { r->size = SIZE_MAX; }), {0}},
          {"has no size", changed([](cuguest_ref* r) { r->size = 0; }), {0}},
          {"is of zeros alone", changed([](cuguest_ref* r) { *r = {}; }), {kInvalidContext}},
          {"names none", changed([](cuguest_ref* r) { *r = CUGUEST_REF_INIT; }), {kInvalidContext}},
          {"has been cleared of its context",
           changed([](cuguest_ref* r) { r->context = {}; }),
           {kInvalidContext}},
          {"has another id", changed([](cuguest_ref* r) { --r->id; }), {kDestroyed}},
          {"has no id", changed([](cuguest_ref* r) { r->id = 0; }), {kDestroyed}},
          {"has the largest id", changed([](cuguest_ref* r) { r->id = ~0ULL; }), {kDestroyed}},
          {"names a primary context that was reset",
           [](Given& given) -> Ref { return given.Keep(RefTo(given.things.ended)); },
           Expected{kDestroyed}.ByDriver()},
          {"names a destroyed context",
           [](Given& given) -> Ref { return given.Keep(RefTo(Destroyed())); },
           Expected{kDestroyed}.ByDriver()},
      }};
}

// The same, where a refusal leaves what was there before.
Parameter<const cuguest_ref*> Leaving(Parameter<const cuguest_ref*> names) {
  for (auto& border : names.borders) border.expected.is_changed = !border.expected.codes.count(1);
  return names;
}

// A reference that is written.
Parameter<cuguest_ref*> Writes(Expected written = {0}) {
  const auto of_size = [](size_t size) {
    return [size](Given& given) { return given.Keep(cuguest_ref{size, nullptr, 0}); };
  };
  return {of_size(sizeof(cuguest_ref)),
          {
              {kAbsent, [](Given&) -> cuguest_ref* { return nullptr; }, {kInvalidValue}},
              {"has no room for the id", of_size(16), {kInvalidValue}},
              {"is of size 1", of_size(1), {kInvalidValue}},
              {"is of zeros alone", of_size(0), written},
              {"is of a later release", of_size(SIZE_MAX), written},
              {"names one", [](Given& given) { return given.Keep(RefTo(given.things.ended)); },
               written},
          }};
}

template <typename T>
Value<T> Is(const std::string& name, T value, Expected expected) {
  return {name, [value](Given&) { return value; }, std::move(expected)};
}

// Its handle must be alive, so that there is no other border value.
Parameter<CUcontext> Context(int of_null = kInvalidContext) {
  return {[](Given& given) { return given.things.home.get(); },
          {Is<CUcontext>(kAbsent, nullptr, {of_null})}};
}

Parameter<int> Number(int valid, const std::vector<int>& borders, const Expected& expected) {
  Parameter<int> parameter = {[valid](Given&) { return valid; }, {}};
  for (const int border : borders) {
    parameter.borders.push_back(Is("is " + std::to_string(border), border, expected));
  }
  return parameter;
}
Parameter<int> AnyNumber(int valid) { return Number(valid, {INT_MIN, -1, 0, 4711, INT_MAX}, {0}); }
Parameter<int> Line() { return AnyNumber(1); }

// Of an enumeration from 0 to `last`.
Parameter<int> OneOf(int last, int valid) {
  Parameter<int> parameter = Number(valid, {INT_MIN, -2, -1, last + 1, INT_MAX}, {kInvalidValue});
  for (int i = 0; i <= last; ++i) {
    parameter.borders.push_back(Is("is " + std::to_string(i), i, {0}));
  }
  return parameter;
}
Parameter<int> EnterMode() { return OneOf(CUGUEST_ALWAYS_PUSH, CUGUEST_ELIDE); }
Parameter<int> IfInactive() {
  Parameter<int> parameter = OneOf(CUGUEST_CREATE_AND_KEEP, CUGUEST_CREATE);
  // What it keeps is given back, so that a row leaves nothing.
  parameter.borders.back().make = [](Given& given) {
    given.Keep(0, [](int*) { cuguest_release_kept_primary(CUGUEST_NO_DEVICE); });
    return int{CUGUEST_CREATE_AND_KEEP};
  };
  return parameter;
}
Parameter<int> HomeOptions() {
  return OneOf(CUGUEST_HOME_REENTERS | CUGUEST_HOME_HOLDS, 0)
      .But("is 1", {kNotSupported})
      .But("is 3", {kNotSupported});
}

// CU_DEVICE_INVALID is -2, CU_DEVICE_CPU -1. Which others there are, only the driver can tell.
Parameter<int> DeviceNumber() {
  Parameter<int> parameter = Number(0, {INT_MIN, -2, -1}, {kInvalidDevice});
  for (const int none : {4711, INT_MAX}) {
    parameter.borders.push_back(
        Is("is " + std::to_string(none), none, Expected{kInvalidDevice}.ByDriver()));
  }
  parameter.borders.push_back(Is("is 1", 1, {0}));
  return parameter;
}

// A cache with a value of `home`; one that is empty takes its first value, and has none to drop.
Parameter<cuguest_per_context*> Caches(const Expected& empty) {
  using Cache = cuguest_per_context;
  return Parameter<Cache*>{&Begun<Cache>, StorageBorders<Cache>(empty, {0})}.But("is a copy",
                                                                                 {kIllegalState});
}
Parameter<const cuguest_per_context*> ReadCaches() {
  return {&Begun<cuguest_per_context>, Reads<cuguest_per_context>().borders};
}
// The context of a value; of none that is alive there is one.
Parameter<const cuguest_ref*> Cached() {
  Parameter<const cuguest_ref*> names = Names();
  for (auto& border : names.borders) {
    if (border.expected.codes != Codes{0} && border.expected.codes != Codes{kInvalidValue}) {
      border.expected = {kNotFound};
    }
  }
  return names;
}

// What a cache of kNumbers can have values of: that type alone.
Parameter<const cuguest_per_context_type*> OfType() {
  using Type = const cuguest_per_context_type*;
  const auto changed = [](void (*change)(cuguest_per_context_type*)) {
    return [change](Given& given) -> Type {
      auto* const type = given.Keep(kNumbers);
      change(type);
      return type;
    };
  };
  using T = cuguest_per_context_type;
  const Expected refused = {kInvalidValue};
  return {changed([](T*) {}),
          {
              {kAbsent, [](Given&) -> Type { return nullptr; }, refused},
              {"is of size 1", changed([](T* t) { t->size = 1; }), refused},
              {"lacks the user's pointer", changed([](T* t) { t->size -= 8; }), refused},
              {"has no size", changed([](T* t) { t->size = 0; }), {0}},
              {"is of a later release", changed([](T* t) { t->size = SIZE_MAX; }), {0}},
              {"has values of no bytes", changed([](T* t) { t->value_size = 0; }), refused},
              {"has larger values", changed([](T* t) { t->value_size = SIZE_MAX; }), refused},
              {"is aligned to 3", changed([](T* t) { t->alignment = 3; }), refused},
              {"is aligned to more", changed([](T* t) { t->alignment = 64; }), refused},
              {"says its alignment",
               changed([](T* t) { t->alignment = alignof(std::max_align_t); }),
               {0}},
              {"makes nothing", changed([](T* t) { t->make = nullptr; }), refused},
              {"destroys nothing", changed([](T* t) { t->destroy = nullptr; }), refused},
              {"leaks", changed([](T* t) { t->leak = t->destroy; }), refused},
              {"is another user's", changed([](T* t) { t->user = t; }), refused},
          }};
}

Parameter<size_t*> WrittenSize() {
  return {[](Given& given) { return given.Keep(size_t{0}); }, {Is<size_t*>(kAbsent, nullptr, {0})}};
}

Parameter<const char*> File() {
  return {[](Given&) { return __FILE__; },
          {Is<const char*>(kAbsent, nullptr, {0}), Is<const char*>("is empty", "", {0})}};
}
Parameter<void*> User(Expected expected = {0}) {
  return {[](Given& given) -> void* { return given.Keep(0); },
          {Is<void*>(kAbsent, nullptr, std::move(expected))}};
}

Parameter<unsigned> ContextFlags() {
  return {[](Given&) { return 0U; },
          {
              Is("is a flag", unsigned{CU_CTX_SCHED_BLOCKING_SYNC}, {0}),
              Is("is every flag", UINT_MAX, Expected{kInvalidValue}.ByDriver()),
              Is("is the last flag", 1U << 31, Expected{kInvalidValue}.ByDriver()),
          }};
}

// An address in memory: what memory there is, only the driver can tell.
using Address = unsigned long long;
Parameter<Address> MemoryAddress() {
  const auto in_memory = [](size_t offset) {
    return [offset](Given& given) -> Address { return given.things.memories.device + offset; };
  };
  const auto unknown = Expected{kInvalidValue}.ByDriver();
  return {
      in_memory(0),
      {
          Is(kAbsent, Address{0}, {kInvalidValue}),
          Is("is 1", Address{1}, unknown),
          Is("is the largest", ~Address{0}, unknown),
          {"is of host memory",
           [](Given& given) { return Address{cuguest_test::AddressOf(given.Keep(0))}; }, unknown},
          {"is of freed memory", [](Given& given) { return Address{given.things.freed}; }, unknown},
          {"is behind the memory",
           [](Given& given) { return Address{given.things.memories.BehindDevice()}; }, unknown},
          {"is its last byte", in_memory(cuguest_test::kBytes - 1), {0}},
          {"is of memory that no context owns",
           [](Given& given) { return Address{given.things.memories.pool}; },
           {0}},
      }};
}

// The handle of any but a special one must be alive.
Parameter<CUstream> LiveStream(const Expected& special = {0}) {
  return {[](Given& given) { return given.things.stream.get(); },
          {
              Is<CUstream>(kAbsent, nullptr, special),
              Is<CUstream>("is the legacy one", CU_STREAM_LEGACY, special),
              Is<CUstream>("is the thread's own", CU_STREAM_PER_THREAD, special),
          }};
}

// Of what needs the driver; of what a thread does with its own scope; of the end of a scope.
Everywhere AsksDriver() { return {{0}, {kNotInitialized}, {kNotPermitted}, {0}, {kDeinitialized}}; }
Everywhere AsksDevices() {
  return {{0}, {kNotInitialized}, {0, kNotPermitted}, {0}, {kDeinitialized}};
}
Everywhere UsesScope() {
  return {{0}, {kNotInitialized}, {kIllegalState}, {kIllegalState}, {kDeinitialized}};
}
Everywhere EndsScope() {
  return {{0}, {0}, Expected{kNotReady}.Reported(), Expected{kNotReady}.Reported(), {0}};
}

// Of a scope whose context is over nothing is to repair.
Expected Over(int code = 0) { return Expected{code}.ByDriver().Changed(); }

// cuguest_pop() needs no storage, but a push.
struct Pushed {};
Parameter<Pushed> HasPushed() {
  return {[](Given& given) {
            BOOST_TEST(cuguest_push(given.things.home.get()) == 0);
            given.Keep(0, [](int*) { cuguest_pop(); });
            return Pushed();
          },
          {Is("is missing", Pushed(), {kIllegalState})}};
}

// To a device whose primary context is active meanwhile, and back.
int BindToDevice(cuguest_thread_home* home, int device, int options, const char* file, int line) {
  CUGUEST_SCOPE(cuguest_primary, primary);
  static_cast<void>(cuguest_primary_retain(&primary, device));
  const int code = cuguest_thread_home_enter_device(home, device, options, file, line);
  return code != 0 ? code : cuguest_thread_home_leave(home);
}

// The same of what some context is needed for.
int RetainActive(cuguest_primary* primary, int device) {
  CUGUEST_SCOPE(cuguest_primary, hosts);
  static_cast<void>(cuguest_primary_retain(&hosts, device));
  return cuguest_primary_retain_if_active(primary, device);
}
int AcquireActive(cuguest_acquired* acquired) {
  CUGUEST_SCOPE(cuguest_primary, hosts);
  static_cast<void>(cuguest_primary_retain(&hosts, 0));
  return cuguest_acquire_any(acquired);
}

// What somebody has created is refused.
int HoldPrimary(cuguest_acquired* acquired) {
  const int code = cuguest_acquired_hold(acquired);
  const bool is_refused =
      code == kNotSupported && cuguest_acquired_source(acquired) == CUGUEST_FROM_CURRENT;
  return is_refused ? 0 : code;
}

// A pin must not outlive its cache: what is still pinned then is lost.
int GetAndUnpin(cuguest_per_context* cache, const cuguest_per_context_type* type,
                const cuguest_ref* context, cuguest_per_context_pin* pin) {
  const int code = cuguest_per_context_get(cache, type, context, pin);
  return code != 0 ? code : cuguest_per_context_unpin(pin);
}
int FindAndUnpin(cuguest_per_context* cache, const cuguest_ref* context,
                 cuguest_per_context_pin* pin) {
  const int code = cuguest_per_context_find(cache, context, pin);
  return code != 0 ? code : cuguest_per_context_unpin(pin);
}

int PushAndPop(CUcontext context) {
  const int code = cuguest_push(context);
  return code != 0 ? code : cuguest_pop();
}
int PushRefAndPop(const cuguest_ref* ref) {
  const int code = cuguest_push_ref(ref);
  return code != 0 ? code : cuguest_pop();
}

// Fills as many bytes as asked for, and no more. Null, and too little room, does nothing.
struct Bytes {
  unsigned char of[256];
};
int FillsBytes(Bytes* bytes, size_t size) {
  Bytes expected;
  std::memset(&expected, 0xA5, sizeof(expected));
  if (bytes != nullptr) *bytes = expected;
  cuguest_init(bytes, size);
  if (bytes == nullptr) return 0;
  if (size >= sizeof(size)) {
    std::memset(&expected, 0, size);
    std::memcpy(&expected, &size, sizeof(size));
  }
  return std::memcmp(bytes, &expected, sizeof(expected)) == 0 ? 0 : kRefuses;
}

// No byte behind those that it may write.
int WritesAsMuchAsFits(int code, size_t size) {
  Bytes bytes;
  std::memset(&bytes, 0xA5, sizeof(bytes));
  char* const text = reinterpret_cast<char*>(bytes.of);
  const size_t whole = cuguest_error_write(code, "do it", text, size);
  if (whole != cuguest_error_write(code, "do it", nullptr, 0)) return kRefuses;
  if (size > 0 && std::strlen(text) != std::min(whole, size - 1)) return kRefuses;
  return std::all_of(bytes.of + size, std::end(bytes.of), [](int byte) { return byte == 0xA5; })
             ? 0
             : kRefuses;
}

int CountsNoneOfNoKind(int kind) {
  const bool is_kind = kind >= -1 && kind <= CUGUEST_OWED;
  return is_kind || cuguest_incident_count(kind) == 0 ? 0 : kRefuses;
}

int FoundSource(const cuguest_acquired* acquired) {
  return cuguest_acquired_source(acquired) == -1 ? kRefuses : 0;
}

void* FindNothing(const char*, int, void*) { return nullptr; }

std::vector<Row> Pure() {
  return {
      MakeRow("cuguest_init", std::function(&FillsBytes), {},
              Parameter<Bytes*>{[](Given& given) { return given.Keep(Bytes()); },
                                {Is<Bytes*>(kAbsent, nullptr, {0})}},
              Parameter<size_t>{[](Given&) { return sizeof(Bytes); },
                                {
                                    Is("is 0", size_t{0}, {0}),
                                    Is("is 1", size_t{1}, {0}),
                                    Is("has no room for itself", sizeof(size_t) - 1, {0}),
                                    Is("has room for itself alone", sizeof(size_t), {0}),
                                    Is("is odd", sizeof(size_t) + 1, {0}),
                                }}),
      BORDERS_OF(cuguest_error_name, {}, AnyNumber(2)),
      BORDERS_OF(cuguest_error_text, {}, AnyNumber(2)),
      BORDERS_OF(cuguest_error_advice, {}, AnyNumber(3)),
      MakeRow("cuguest_error_write", std::function(&WritesAsMuchAsFits), {}, AnyNumber(3),
              Parameter<size_t>{[](Given&) { return sizeof(Bytes); },
                                {Is("is 0", size_t{0}, {0}), Is("is 1", size_t{1}, {0})}}),
      BORDERS_OF(cuguest_incident_name, {}, AnyNumber(0)),
      BORDERS_OF(cuguest_repair_name, {}, AnyNumber(0)),
      MakeRow("cuguest_incident_count", std::function(&CountsNoneOfNoKind), {},
              Number(0, {INT_MIN, -2, -1, CUGUEST_OWED + 1, INT_MAX}, {0})),
  };
}

std::vector<Row> Refs() {
  Everywhere current = AsksDriver();
  current.here = current.elsewhere = {0, kInvalidContext};
  current.on_dead = {kDestroyed};
  return {
      BORDERS_OF(cuguest_ref_borrow, AsksDriver(), Writes(), Context()),
      BORDERS_OF(cuguest_ref_current, current, Writes({0, kInvalidContext})),
      BORDERS_OF(cuguest_ref_check, AsksDriver(), Names()),
  };
}

std::vector<Row> Guards() {
  using Guard = cuguest_guard;
  return {
      BORDERS_OF(cuguest_guard_enter, AsksDriver(), Begins<Guard>(), Context(), EnterMode(), File(),
                 Line()),
      BORDERS_OF(cuguest_guard_enter_ref, AsksDriver(), Begins<Guard>(), Names(), EnterMode(),
                 File(), Line()),
      BORDERS_OF(cuguest_guard_move_to, UsesScope(), Uses<Guard>(Over()), Context(), File(),
                 Line()),
      BORDERS_OF(cuguest_guard_move_to_ref, UsesScope(), Uses<Guard>(Over()), Names(), File(),
                 Line()),
      BORDERS_OF(cuguest_guard_ref, AsksDriver(), Reads<Guard>(), Writes()),
      BORDERS_OF(cuguest_guard_reassert, UsesScope(), Uses<Guard>(Over())),
      // The capture mode is the thread's own, wherever it is; the guard knows its thread.
      BORDERS_OF(cuguest_guard_relax,
                 {{0}, {0}, {kIllegalState}, {kIllegalState}, {kDeinitialized}}, Uses<Guard>({0}),
                 File(), Line()),
      BORDERS_OF(cuguest_guard_leave, EndsScope(), Uses<Guard>(Over())),
      BORDERS_OF(cuguest_guard_cleanup, EndsScope(), Uses<Guard>(Over())),
      BORDERS_OF(cuguest_guard_enter_stream, AsksDriver(), Begins<Guard>(), LiveStream(),
                 Number(0, {INT_MIN, -2, -1, 4711, INT_MAX}, {0}), IfInactive(), EnterMode(),
                 File(), Line()),
      BORDERS_OF(cuguest_guard_enter_pointer, AsksDriver(), Begins<Guard>(), MemoryAddress(),
                 IfInactive(), EnterMode(), File(), Line()),
      BORDERS_OF(cuguest_guard_enter_device, AsksDriver(), Begins<Guard>(), DeviceNumber(),
                 IfInactive().But("is 0", {0, kInvalidContext}), EnterMode(), File(), Line()),
      BORDERS_OF(cuguest_guard_enter_acquired, AsksDriver(), Begins<Guard>(),
                 Reads<cuguest_acquired>(), EnterMode(), File(), Line()),
      MakeRow("cuguest_push", std::function(&PushAndPop), AsksDriver(), Context()),
      MakeRow("cuguest_push_ref", std::function(&PushRefAndPop), AsksDriver(), Names()),
      MakeRow("cuguest_pop", std::function([](Pushed) { return cuguest_pop(); }),
              {{0}, {kIllegalState}, {kIllegalState}, {kIllegalState}, {0}}, HasPushed()),
  };
}

std::vector<Row> Scopes() {
  using Empty = cuguest_no_context_guard;
  using Host = cuguest_host_scope;
  using Capture = cuguest_capture_guard;
  using Home = cuguest_thread_home;
  Everywhere enters_empty = AsksDriver();
  Everywhere ends_empty = EndsScope();
  enters_empty.on_dead = {kNotSupported};
  ends_empty.on_dead = Expected{};
  return {
      BORDERS_OF(cuguest_no_context_guard_enter, enters_empty, Begins<Empty>(), File(), Line()),
      BORDERS_OF(cuguest_no_context_guard_leave, ends_empty, Uses<Empty>()),
      BORDERS_OF(cuguest_no_context_guard_cleanup, ends_empty, Uses<Empty>()),
      // It takes out no guard, so that it asks nobody.
      BORDERS_OF(cuguest_host_scope_enter, {}, Begins<Host>(), File(), Line()),
      BORDERS_OF(cuguest_host_scope_leave, EndsScope(), Uses<Host>()),
      BORDERS_OF(cuguest_host_scope_cleanup, EndsScope(), Uses<Host>()),
      // The capture mode is the thread's own, wherever it is.
      BORDERS_OF(cuguest_capture_guard_enter, {{0}, {0}, {0}, {0}, {kDeinitialized}},
                 Begins<Capture>(), OneOf(CUGUEST_CAPTURE_RELAXED, CUGUEST_CAPTURE_RELAXED), File(),
                 Line()),
      BORDERS_OF(cuguest_capture_guard_leave, EndsScope(), Uses<Capture>()),
      BORDERS_OF(cuguest_capture_guard_cleanup, EndsScope(), Uses<Capture>()),
      BORDERS_OF(cuguest_thread_home_enter_ref, AsksDriver(), Begins<Home>(), Names(),
                 HomeOptions(), File(), Line()),
      // What a special stream, and memory of no context, mean depends on what is current.
      BORDERS_OF(cuguest_thread_home_enter_stream, AsksDriver(), Begins<Home>(),
                 LiveStream({0, kInvalidContext}), HomeOptions(), File(), Line()),
      BORDERS_OF(cuguest_thread_home_enter_pointer, AsksDriver(), Begins<Home>(),
                 MemoryAddress().But("is of memory that no context owns", {0, kInvalidContext}),
                 HomeOptions(), File(), Line()),
      MakeRow("cuguest_thread_home_enter_device", std::function(&BindToDevice), AsksDriver(),
              Begins<Home>(), DeviceNumber(), Number(0, {INT_MIN, -1, 4, INT_MAX}, {kInvalidValue}),
              File(), Line()),
      BORDERS_OF(cuguest_thread_home_ref, {}, Reads<Home>(), Writes()),
      BORDERS_OF(cuguest_thread_home_check, UsesScope(), Uses<Home>(Over(kDestroyed))),
      BORDERS_OF(cuguest_thread_home_move_to, UsesScope(), Uses<Home>(Over()), Leaving(Names())),
      BORDERS_OF(cuguest_thread_home_leave, EndsScope(), Uses<Home>(Over())),
      BORDERS_OF(cuguest_thread_home_cleanup, EndsScope(), Uses<Home>(Over())),
  };
}

// Gives back what the driver counts.
Everywhere GivesBack() {
  return {{0}, {kNotInitialized}, Expected{kNotPermitted}.Kept(), {0}, {0}};
}
// The same, where nobody is told: an incident says what is owed.
Everywhere Owes() {
  Everywhere everywhere = GivesBack();
  everywhere.host_function.is_reported = true;
  return everywhere;
}
const Everywhere kToItself = {
    {kIllegalState}, {kIllegalState}, {kIllegalState}, {kIllegalState}, {kIllegalState}};

std::vector<Row> Holders() {
  using Primary = cuguest_primary;
  using Keeper = cuguest_primary_keeper;
  using Shared = cuguest_shared_context;
  return {
      BORDERS_OF(cuguest_primary_retain, AsksDriver(), Begins<Primary>(), DeviceNumber()),
      MakeRow("cuguest_primary_retain_if_active", std::function(&RetainActive), AsksDriver(),
              Begins<Primary>(), DeviceNumber()),
      BORDERS_OF(cuguest_release_kept_primary, {},
                 Number(0, {INT_MIN, -2, -1, 63, 64, INT_MAX}, {0})),
      // A keeper that has begun keeps more.
      BORDERS_OF(cuguest_primary_keeper_keep,
                 {{0}, {0, kNotInitialized}, {0, kNotPermitted}, {0}, {0, kDeinitialized}},
                 Parameter<Keeper*>{&Fresh<Keeper>, StorageBorders<Keeper>({0}, {0})},
                 Reads<cuguest_acquired>()),
      BORDERS_OF(cuguest_primary_keeper_release, GivesBack(), Uses<Keeper>(),
                 Number(0, {INT_MIN, -2, -1, 63, 64, INT_MAX}, {0})),
      BORDERS_OF(cuguest_primary_keeper_cleanup, Owes(), Uses<Keeper>()),
      BORDERS_OF(cuguest_primary_ref, {}, Reads<Primary>(), Writes()),
      BORDERS_OF(cuguest_primary_move, {}, Begins<Primary>(), Uses<Primary>()),
      MakeRow("cuguest_primary_move: to itself", std::function([](Primary* primary) {
                return cuguest_primary_move(primary, primary);
              }),
              kToItself, Parameter<Primary*>{&Begun<Primary>, {}}),
      BORDERS_OF(cuguest_primary_release, GivesBack(), Uses<Primary>()),
      BORDERS_OF(cuguest_primary_cleanup, Owes(), Uses<Primary>()),
      BORDERS_OF(cuguest_shared_context_create, AsksDriver(), Begins<Shared>(), DeviceNumber(),
                 ContextFlags()),
      BORDERS_OF(cuguest_shared_context_attach, AsksDriver(), Begins<Shared>(),
                 Context(kInvalidValue)),
      BORDERS_OF(cuguest_shared_context_ref, {}, Reads<Shared>(), Writes()),
      BORDERS_OF(cuguest_shared_context_move, {}, Begins<Shared>(), Uses<Shared>({0})),
      // Of a context of somebody else's: nothing but a count.
      BORDERS_OF(cuguest_shared_context_detach, {}, Uses<Shared>(Over(kDestroyed))),
      BORDERS_OF(cuguest_shared_context_cleanup, {}, Uses<Shared>(Over(kDestroyed))),
  };
}

std::vector<Row> Acquiring() {
  using Acquired = cuguest_acquired;
  Everywhere any = AsksDriver();
  any.on_dead = {kDestroyed};
  const auto depends = [] { return Expected{0, kInvalidContext}; };
  return {
      BORDERS_OF(cuguest_acquire_on, AsksDriver(), Begins<Acquired>(), DeviceNumber(),
                 IfInactive().But("is 0", depends())),
      BORDERS_OF(cuguest_acquire_from_pointer, AsksDriver(), Begins<Acquired>(), MemoryAddress(),
                 IfInactive()),
      BORDERS_OF(cuguest_acquire_from_stream, AsksDriver(), Begins<Acquired>(), LiveStream(),
                 Number(0, {INT_MIN, -2, -1, 4711, INT_MAX}, {0}), IfInactive()),
      MakeRow("cuguest_acquire_from_stream: a special one",
              std::function([](Acquired* acquired, int device, int if_inactive) {
                return cuguest_acquire_from_stream(acquired, nullptr, device, if_inactive);
              }),
              AsksDriver(), Begins<Acquired>(), DeviceNumber().But("is -1", depends()),
              IfInactive().But("is 0", depends())),
      MakeRow("cuguest_acquire_any", std::function(&AcquireActive), any, Begins<Acquired>()),
      MakeRow("cuguest_acquired_hold", std::function(&HoldPrimary),
              {{0}, {0}, {0}, {0}, {0, kDeinitialized}}, Uses<Acquired>()),
      BORDERS_OF(cuguest_acquired_device, {}, Reads<Acquired>(),
                 Parameter<int*>{[](Given& given) { return given.Keep(-1); },
                                 {Is<int*>(kAbsent, nullptr, {kInvalidValue})}}),
      BORDERS_OF(cuguest_free_memory, AsksDriver(), DeviceNumber(),
                 IfInactive().But("is 0", depends()), WrittenSize(), WrittenSize()),
      MakeRow("cuguest_is_initialized",
              std::function([] { return cuguest_is_initialized() == 1 ? 0 : kRefuses; }),
              {{0}, Expected{kRefuses}.ByDriver(), {0}, {0}, {0}}),
      BORDERS_OF(cuguest_peer_access_check, AsksDevices(), DeviceNumber().But("is 1", {kNoPeer}),
                 Number(1, {INT_MIN, -2, -1}, {kInvalidDevice})),
      BORDERS_OF(cuguest_acquired_ref, {}, Reads<Acquired>(), Writes()),
      MakeRow("cuguest_acquired_source", std::function(&FoundSource), {}, Reads<Acquired>()),
      BORDERS_OF(cuguest_acquired_move, {}, Begins<Acquired>(), Uses<Acquired>()),
      BORDERS_OF(cuguest_acquired_release, GivesBack(), Uses<Acquired>()),
      BORDERS_OF(cuguest_acquired_cleanup, Owes(), Uses<Acquired>()),
  };
}

// A value that is there is found everywhere; in a child none changes.
std::vector<Row> Values() {
  using Cache = cuguest_per_context;
  using Pin = cuguest_per_context_pin;
  const Everywhere drops = {{0}, {kNotFound}, {0}, {0}, {0}};
  return {
      MakeRow("cuguest_per_context_get", std::function(&GetAndUnpin), {}, Caches({0}), OfType(),
              Names(), Begins<Pin>()),
      MakeRow("cuguest_per_context_get: makes it", std::function(&GetAndUnpin), AsksDriver(),
              Parameter<Cache*>{&Fresh<Cache>, {}},
              Parameter<const cuguest_per_context_type*>{OfType().valid, {}}, Names(),
              Begins<Pin>()),
      MakeRow("cuguest_per_context_find", std::function(&FindAndUnpin), {}, Caches({kNotFound}),
              Cached(), Begins<Pin>()),
      MakeRow("cuguest_per_context_value", std::function([](const Pin* pin) {
                return cuguest_per_context_value(pin) != nullptr ? 0 : kRefuses;
              }),
              {}, Reads<Pin>()),
      BORDERS_OF(cuguest_per_context_unpin, {}, Uses<Pin>()),
      BORDERS_OF(cuguest_per_context_pin_cleanup, {}, Uses<Pin>()),
      BORDERS_OF(cuguest_per_context_forget, drops, Caches({kNotFound}), Cached()),
      BORDERS_OF(cuguest_per_context_forget_destroyed, drops, Caches({kNotFound}), Cached()),
      BORDERS_OF(cuguest_per_context_forget_all, {}, Caches({0}), WrittenSize()),
      BORDERS_OF(cuguest_per_context_drop_dead, {}, Caches({0}), WrittenSize()),
      MakeRow("cuguest_per_context_size", std::function([](const Cache* cache) {
                return cuguest_per_context_size(cache) == 1 ? 0 : kRefuses;
              }),
              {}, ReadCaches()),
      BORDERS_OF(cuguest_per_context_close, {}, Uses<Cache>()),
      BORDERS_OF(cuguest_per_context_cleanup, {}, Uses<Cache>()),
  };
}

std::vector<Row> Listeners() {
  using Listener = cuguest_incident_listener;
  return {
      BORDERS_OF(cuguest_incident_listener_register, {}, Begins<Listener>(),
                 Parameter<cuguest_incident_callback>{
                     [](Given&) { return &Ignore; },
                     {Is<cuguest_incident_callback>(kAbsent, nullptr, {kInvalidValue})}},
                 User()),
      BORDERS_OF(cuguest_incident_listener_remove, {}, Uses<Listener>()),
      BORDERS_OF(cuguest_incident_listener_cleanup, {}, Uses<Listener>()),
      // It is too late for it; in time, test/capi/c_test.c calls it.
      BORDERS_OF(
          cuguest_driver_adopt,
          {{kIllegalState}, {kIllegalState}, {kIllegalState}, {kIllegalState}, {kIllegalState}},
          Parameter<cuguest_driver_lookup>{
              [](Given&) { return &FindNothing; },
              {Is<cuguest_driver_lookup>(kAbsent, nullptr, {kInvalidValue})}},
          User({kIllegalState})),
  };
}

const std::vector<Row>& Rows() {
  static const auto& s_rows = *[] {
    auto* const all = new std::vector<Row>;
    for (const auto& rows :
         {Pure(), Refs(), Guards(), Scopes(), Holders(), Acquiring(), Values(), Listeners()}) {
      all->insert(all->end(), rows.begin(), rows.end());
    }
    return all;
  }();
  return s_rows;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(c_borders, *cuguest_test::OnlySim())

BOOST_AUTO_TEST_CASE(of_every_function) {
  const CContracts contracts(CUGUEST_C_HEADER);
  BorderWalk walk("the C API");
  for (const Row& row : Rows()) {
    walk.OverBorders(row);
    walk.OnOtherThreads(row);
    walk.InAChild(row);
    walk.InAHostFunction(row);
  }
  for (const std::string& function : contracts.functions()) {
    BOOST_TEST(walk.names().count(function) == 1, function << " has no row");
  }
  for (const auto& [function, said] : walk.said()) {
    const Codes named = contracts.CodesOf(function);
    for (const int code : said) {
      BOOST_TEST(named.count(code) == 1,
                 function << " says " << code << ", which its comment does not name");
    }
  }
}

BOOST_AUTO_TEST_CASE(at_exit) {
  if (std::getenv("CUGUEST_TEST_AT_EXIT") != nullptr) AtExit(Rows());
  const cudasim_test::Ended ended =
      cudasim_test::RunSelf({"--run_test=c_borders/at_exit"}, {"CUGUEST_TEST_AT_EXIT=1"});
  BOOST_TEST(ended.code == 0, ended.output);
  BOOST_TEST(ended.output.find("calls at exit, 0 broken") != std::string::npos, ended.output);
}

BOOST_AUTO_TEST_SUITE_END()
