// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of calls: a row says what a call is given, and what it does to the objects of the
// model. Most rows are one line:
//
//   {DRIVER(cuStreamDestroy), 2, {Use("S")}, Ends(0)},
//
// The function's own type says how arguments become parameters, and what its outputs are.

#ifndef CUDASIM_CONFORMANCE_CALL_H_
#define CUDASIM_CONFORMANCE_CALL_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "conformance/world.h"
#include "test/support/raw_driver.h"

namespace conformance {

// Param
//
// Where a parameter's values come from.
struct Param {
  enum class Way { kNumber, kUse, kMake, kOut };

  Way way;
  const char* kinds = "";
  std::vector<long long> numbers;
  int null_percent = 0;
  bool is_hidden = false;  // an output that is not determined: only whether it is written
};

// One of `numbers`.
Param Number(std::initializer_list<long long> numbers);
// An object of one of `kinds`, or null.
Param Use(const char* kinds, int null_percent = 4);
// A stream, the special ones too.
Param UseStream();
// A place for the handle of what is made.
Param Make(const char* kind, int null_percent = 3);
// A place for an output, a handle's if there are `kinds`. A small letter is a kind of ids: i of
// contexts, s of streams, b of buffers, c of captures.
Param Out(const char* kinds = "", int null_percent = 3);
Param Hidden(int null_percent = 3);

// Frame
//
// One call: its arguments as the driver's, and its answer.
class Frame {
 public:
  Frame(World& world, const std::vector<Param>& params, const Values& values)
      : world(world), params_(params), values_(values) {}

  World& world;

  const Value& value(size_t i) const { return values_[i]; }
  const Param& param(size_t i) const { return params_[i]; }
  long long Number(size_t i) const { return values_[i].number; }
  bool IsNull(size_t i) const { return values_[i].number == 0; }
  // A number, or the handle or address of the object.
  std::uint64_t Raw(size_t i) const;
  template <typename T>
  T As(size_t i) const {
    if constexpr (std::is_pointer_v<T>) {
      return reinterpret_cast<T>(static_cast<std::uintptr_t>(Raw(i)));
    } else {
      return static_cast<T>(Raw(i));
    }
  }
  Object* ObjectOf(size_t i) { return world.Find(values_[i]); }

  // Outputs start as this, and "-" says that one was not written.
  static constexpr unsigned char kUntouched = 0x77;
  void SayNumber(long long number) { answer_ += ' ' + std::to_string(number); }
  void SayText(const std::string& text) { answer_ += ' ' + text; }
  // Parameter `i`, of `size` bytes at `place`, as its Param says.
  void SayOut(size_t i, const void* place, size_t size, bool is_made);

  const std::string& answer() const { return answer_; }
  int code = 0;

 private:
  const std::vector<Param>& params_;
  const Values& values_;
  std::string answer_;
};

// The context that is current on this thread now.
Value SeenCurrent(const World& world);

// Of a green context: the primary one.
Value OwnerOf(const World& world, const Value& context);
// Of a special stream: the current one.
Value ContextOfStream(const World& world, const Value& stream);

// Names for ids, in the order in which a sequence sees them.
std::string NameOfId(World& world, char kind, unsigned long long id);

template <typename T, typename = void>
struct IsComplete : std::false_type {};
template <typename T>
struct IsComplete<T, std::enable_if_t<!std::is_void_v<T> && sizeof(T) != 0>> : std::true_type {};

// One parameter: an argument, or an output's place.
template <typename T, typename = void>
class Parameter {
 public:
  Parameter(Frame& frame, size_t i) : value_(frame.As<T>(i)) {}
  T Get() { return value_; }
  void Say(Frame&, size_t) {}

 private:
  T value_;
};

template <typename T>
class Parameter<T*, std::enable_if_t<IsComplete<T>::value && !std::is_const_v<T>>> {
 public:
  Parameter(Frame& frame, size_t i) : is_null_(frame.IsNull(i)) {
    std::memset(static_cast<void*>(&place_), Frame::kUntouched, sizeof(place_));
  }
  T* Get() { return is_null_ ? nullptr : &place_; }
  void Say(Frame& frame, size_t i) {
    if (!is_null_) frame.SayOut(i, &place_, sizeof(place_), frame.code == 0);
  }

 private:
  T place_;
  bool is_null_;
};

using Run = std::function<int(Frame&)>;

template <typename Result, typename... T, size_t... kIndex>
int RunPlain(Result (*function)(T...), Frame& frame, std::index_sequence<kIndex...>) {
  std::tuple<Parameter<T>...> parameters{Parameter<T>(frame, kIndex)...};
  frame.code = static_cast<int>(function(std::get<kIndex>(parameters).Get()...));
  (std::get<kIndex>(parameters).Say(frame, kIndex), ...);
  return frame.code;
}

template <typename Result, typename... T>
Run Plain(Result (*function)(T...)) {
  return [=](Frame& frame) { return RunPlain(function, frame, std::index_sequence_for<T...>()); };
}

// Call
//
// A row of the table.
struct Call {
  const char* name;
  Run run;
  int weight;
  std::vector<Param> params = {};
  // What it did to objects of the model, after it succeeded.
  std::function<void(Frame&)> then = {};
  // Whether it is defined on a real driver, and possible in this sequence, beyond that its objects
  // may be passed.
  std::function<bool(const World&, const Values&)> when = {};
};

#define DRIVER(name) #name, conformance::Plain(RAW(name))
// What <cuda.h> does not declare, or by another name: `name` is how traces call it.
#define DRIVER_AS(name, Type, symbol) name, conformance::Plain(RAW_AS(Type, symbol))
#define RUNTIME(name) #name, conformance::Plain(&::name)

using Then = std::function<void(Frame&)>;
using When = std::function<bool(const World&, const Values&)>;

// Argument `i` is gone.
Then Ends(size_t i);
// Argument `i` was made, and belongs to the current context.
Then OfCurrent(size_t i);
// The same of memory, of as many bytes as argument `bytes` says.
Then Allocated(size_t i, size_t bytes);
// A capture, and the graph that it becomes, may use these arguments from now on.
Then KeptByCaptures(std::initializer_list<size_t> arguments);
// The same, of work in the stream that is argument `stream`, which is waited for where nothing
// captures: to free what is still in use is undefined.
Then Used(std::initializer_list<size_t> arguments, size_t stream);

// The call may return before its work in stream 0 is done, which is then waited for. There is none
// where argument `bytes` is 0.
Then Done(size_t bytes);

// Every object among `objects` has argument `bytes` bytes.
When Fits(std::initializer_list<size_t> objects, size_t bytes);
// Waits for an event of CU_EVENT_INTERPROCESS crash in a context that is not the event's (measured
// on an H100, driver 580.159.04).
using Place = std::function<Value(const World&, const Values&)>;
When MayWait(Place place, size_t event);
// Only in sequences that may take long.
When IsExpensive();
// No graph uses argument `i`.
When IsFree(size_t i);

// Argument 0 was instantiated from argument `graph`, or cloned.
Then CameFrom(size_t graph);

// A room of the table: calls that are weighted together.
struct Room {
  const char* name;
  std::vector<Call> calls;
};

Room ContextRoom();
Room PrimaryRoom();
Room StreamRoom();
Room EventRoom();
Room MemoryRoom();
Room ErrorRoom();
Room RuntimeRoom();
Room CaptureRoom();
Room GraphRoom();
Room NodeRoom();
Room PoolRoom();
Room GreenRoom();
Room CodeRoom();
Room DeviceRoom();
const std::vector<Room>& Rooms();
const Call* FindCall(const std::string& name);

}  // namespace conformance

#endif  // CUDASIM_CONFORMANCE_CALL_H_
