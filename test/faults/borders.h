// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk of borders: of every public function each parameter gets every border value of its kind,
// with valid values for the others; and the function with valid ones is called where it cannot do
// what it does: on another thread, in a forked child, in a host function, at exit. It says what its
// contract says, changes nothing where it refuses, works right after with valid values, and makes
// no driver call that fails but where only the driver can tell.
//
// A row is a function and a Parameter for each of its parameters, of the same types: one that is
// missing does not compile. A Parameter comes with its border values, so that no row forgets one.

#ifndef CUGUEST_TEST_FAULTS_BORDERS_H_
#define CUGUEST_TEST_FAULTS_BORDERS_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "test/runtime/calls.h"

namespace cuguest_faults {

using cuguest_runtime_test::Things;

// What calls say: a CUresult, or one of these.
using Codes = std::set<int>;
constexpr int kSilent = -100;   // nothing: it is void
constexpr int kRefuses = -101;  // that it refuses, and no more
constexpr int kNull = -102;     // null, of what never returns it

// What one call is given. It goes when the call is over, the last first.
class Given {
 public:
  explicit Given(const Things& all) : things(all) {}
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;
  ~Given() {
    while (!kept_.empty()) kept_.pop_back();
  }

  template <typename T>
  T* Keep(T value) {
    return Keep(std::move(value), [](T*) {});
  }
  // end(&value) before it goes.
  template <typename T, typename End>
  T* Keep(T value, End end) {
    T* const kept = new T(std::move(value));
    kept_.emplace_back(kept, [end](T* ended) {
      end(ended);
      delete ended;
    });
    return kept;
  }

  const Things& things;

 private:
  std::vector<std::shared_ptr<void>> kept_;
};

struct Expected {
  Expected(std::initializer_list<int> of) : codes(of) {}  // NOLINT: implicit
  explicit Expected(Codes of) : codes(std::move(of)) {}

  // A driver call may fail: nobody else can tell.
  Expected ByDriver() && {
    is_by_driver = true;
    return std::move(*this);
  }
  // An incident is reported.
  Expected Reported() && {
    is_reported = true;
    return std::move(*this);
  }
  // It refuses, and what it was to change is over; a reference to a primary context is not given
  // back, and nobody's.
  Expected Changed() && {
    is_changed = true;
    return std::move(*this);
  }
  Expected Kept() && {
    is_kept = true;
    return std::move(*this);
  }

  Codes codes;
  bool is_by_driver = false;
  bool is_reported = false;
  bool is_changed = false;
  bool is_kept = false;
};

template <typename T>
struct Value {
  std::string name;
  std::function<T(Given&)> make;
  Expected expected;
};

template <typename T>
struct Parameter {
  std::function<T(Given&)> valid;
  std::vector<Value<T>> borders;

  // Another of its values has been given a meaning by the function.
  Parameter But(const std::string& name, Expected expected) && {
    for (Value<T>& border : borders) {
      if (border.name == name) border.expected = std::move(expected);
    }
    return std::move(*this);
  }
  Parameter Without(const std::string& name) && {
    const auto is_it = [&name](const Value<T>& border) { return border.name == name; };
    borders.erase(std::remove_if(borders.begin(), borders.end(), is_it), borders.end());
    return std::move(*this);
  }
};

// What the function says with valid values.
struct Everywhere {
  Expected here = {0};
  Expected child = {0};
  Expected host_function = {0};
  Expected elsewhere = {0};  // on another thread than the one that made what it is given
  Expected at_exit = {0};    // after the driver's
  // A destroyed context is current: nothing where it is as here, and no code where what it is given
  // cannot be made then.
  std::optional<Expected> on_dead = std::nullopt;
};

// A call that was given what it needs.
struct Ready {
  std::function<int()> call;
  std::function<int()> call_with_valid;  // where `call` has a border value
};

struct Play {
  std::string what;
  Expected expected;
  std::function<Ready(Given&)> prepare;
};

// A border value in each of two parameters, at these places of `borders`.
struct Pair {
  size_t first;
  size_t second;
  std::function<Ready(Given&)> prepare;
};

struct Row {
  std::string names;
  Everywhere everywhere;
  std::function<Ready(Given&)> prepare;  // with valid values
  std::vector<Play> borders;
  std::vector<Pair> pairs;
  // Once for each Things, before anything is counted: what a library keeps to itself is kept then.
  std::function<void(const Things&)> warm_up = [](const Things&) {};
};

namespace internal {

inline int Said(int code) { return code; }
inline int Said(const char* text) { return text != nullptr ? 0 : kNull; }
// Where the text of a status goes, unless it is null.
inline std::string* g_said = nullptr;
// In C++ the number of an absl::StatusCode.
inline int Said(const absl::Status& status) {
  if (g_said != nullptr) *g_said = status.ToString();
  return static_cast<int>(status.code());
}
inline int Said(CUresult code) { return Said(cuguest::ToStatus(code, "call it")); }
inline int Said(const cuguest::Error& error) { return Said(cuguest::ToStatus(error)); }
template <typename T>
auto Said(const T& object) -> decltype(Said(cuguest::Error(object.error()))) {
  return Said(cuguest::Error(object.error()));
}
template <typename T>
int Said(const absl::StatusOr<T>& result) {
  return Said(result.status());
}

// Functions and parameters without their types, so that walking over them is compiled once. An
// argument lives as long as the call that is given it.
using Argument = std::shared_ptr<void>;
using Arguments = std::vector<Argument>;

struct AnyParameter {
  std::function<Argument(Given&)> valid;
  std::vector<Value<Argument>> borders;
};

template <typename T>
std::function<Argument(Given&)> Untyped(std::function<T(Given&)> make) {
  return [make = std::move(make)](Given& given) -> Argument {
    return std::make_shared<T>(make(given));
  };
}

template <typename T>
AnyParameter Untyped(Parameter<T> parameter) {
  AnyParameter any = {Untyped(std::move(parameter.valid)), {}};
  for (Value<T>& border : parameter.borders) {
    any.borders.push_back({border.name, Untyped(std::move(border.make)), border.expected});
  }
  return any;
}

template <typename R, typename... A, size_t... kPlaces>
std::function<int(const Arguments&)> Untyped(std::function<R(A...)> function,
                                             std::index_sequence<kPlaces...>) {
  return [function = std::move(function)]([[maybe_unused]] const Arguments& arguments) {
    if constexpr (std::is_void_v<R>) {
      function(*static_cast<A*>(arguments[kPlaces].get())...);
      return kSilent;
    } else {
      return Said(function(*static_cast<A*>(arguments[kPlaces].get())...));
    }
  };
}

Row RowOf(const std::string& names, const std::function<int(const Arguments&)>& function,
          Everywhere everywhere, const std::vector<AnyParameter>& parameters);

}  // namespace internal

// `names` is the function and, after a colon, what is particular about this form of calling it.
template <typename R, typename... A>
Row MakeRow(const std::string& names, std::function<R(A...)> function, Everywhere everywhere,
            Parameter<A>... parameters) {
  return internal::RowOf(names,
                         internal::Untyped(std::move(function), std::index_sequence_for<A...>()),
                         std::move(everywhere), {internal::Untyped(std::move(parameters))...});
}

inline std::vector<Row> Joined(const std::vector<std::vector<Row>>& tables) {
  std::vector<Row> all;
  for (const std::vector<Row>& rows : tables) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

// The function alone, as it is declared.
#define BORDERS_OF(named, ...) MakeRow(#named, std::function(&named), __VA_ARGS__)

// Walks over the rows, and tells what it found on stdout and, of what is wrong, Boost.Test.
class BorderWalk {
 public:
  explicit BorderWalk(const char* tables) : tables_(tables) {}
  ~BorderWalk();

  // In every state of the thread's stack.
  void OverBorders(const Row& row);
  void OnOtherThreads(const Row& row);
  void InAChild(const Row& row);
  void InAHostFunction(const Row& row);
  // Which of two errors it tells, where two arguments are wrong: a line for every two arguments,
  // and one for every two values of which it tells the other.
  std::vector<std::string> OrderOf(const Row& row);

  // The functions that there were rows of, and which failures each has said.
  const std::map<std::string, Codes>& said() const { return said_; }
  const std::set<std::string>& names() const { return names_; }

 private:
  void Check(const Row& row, const std::string& what, const Expected& expected, int code,
             const std::vector<std::string>& failed);
  void Complain(const Row& row, const std::string& what, const std::string& how);
  void PlayOnce(const Things& things, const Row& row, const Play& play, const Expected& valid);

  const char* const tables_;
  std::map<std::string, Codes> said_;
  std::set<std::string> names_;
  size_t borders_ = 0;
  size_t elsewhere_ = 0;
  size_t broken_ = 0;
};

// Runs `rows` with valid values in an atexit handler of the process, which ends.
[[noreturn]] void AtExit(const std::vector<Row>& rows);

}  // namespace cuguest_faults

#endif  // CUGUEST_TEST_FAULTS_BORDERS_H_
