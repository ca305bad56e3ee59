// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/error_or.h"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "subprojects/cudasim/test/support/child.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(error_or)

namespace {

using cuguest::Error;
using cuguest::ErrorOr;

Error Failed(CUresult code = CUDA_ERROR_NOT_FOUND) {
  Error error;
  error.code = code;
  error.doing = "find it";
  return error;
}

// How many there are, and of those how many hold something.
struct Counted {
  Counted() { ++s_there; }
  Counted(Counted&& other) noexcept : holds(std::exchange(other.holds, false)) { ++s_there; }
  Counted& operator=(Counted&&) = delete;
  ~Counted() { --s_there; }

  bool holds = true;
  static inline int s_there = 0;
};

struct Base {
  virtual ~Base() = default;
};
struct Derived : Base {};

static_assert(!std::is_copy_constructible_v<ErrorOr<int>>);
static_assert(std::is_nothrow_move_constructible_v<ErrorOr<std::unique_ptr<int>>>);
static_assert(std::is_nothrow_move_assignable_v<ErrorOr<Counted>>);
static_assert(std::is_convertible_v<Error, ErrorOr<int>>);
static_assert(std::is_convertible_v<const char*, ErrorOr<std::string>>);
static_assert(!std::is_convertible_v<const char*, ErrorOr<int>>);
static_assert(std::is_same_v<decltype(*std::declval<ErrorOr<int>>()), int&&>);
static_assert(std::is_same_v<decltype(*std::declval<const ErrorOr<int>&>()), const int&>);

}  // namespace

BOOST_AUTO_TEST_CASE(holds_a_value) {
  ErrorOr<std::string> made = "value";
  BOOST_TEST_REQUIRE(made.ok());
  BOOST_TEST(*made == "value");
  BOOST_TEST(made->size() == 5U);
  BOOST_TEST(made.error().code == CUDA_SUCCESS);
  *made = "another";
  const ErrorOr<std::string>& seen = made;
  BOOST_TEST(*seen == "another");
  BOOST_TEST(seen->size() == 7U);
}

BOOST_AUTO_TEST_CASE(holds_an_error) {
  const ErrorOr<std::string> made = Failed();
  BOOST_TEST(!made.ok());
  BOOST_TEST(made.error().code == CUDA_ERROR_NOT_FOUND);
  BOOST_TEST(std::string(made.error().doing) == "find it");
}

BOOST_AUTO_TEST_CASE(an_error_that_is_none) {
  const ErrorOr<int> made = Error();
  BOOST_TEST(!made.ok());
  BOOST_TEST(made.error().code == CUDA_ERROR_UNKNOWN);
}

BOOST_AUTO_TEST_CASE(takes_what_is_only_moved) {
  ErrorOr<std::unique_ptr<Base>> made = std::make_unique<Derived>();
  BOOST_TEST_REQUIRE(made.ok());
  Base* const there = made->get();
  const std::unique_ptr<Base> taken = *std::move(made);
  BOOST_TEST(taken.get() == there);
  BOOST_TEST(made.ok());
  BOOST_TEST((*made == nullptr));
}

BOOST_AUTO_TEST_CASE(each_value_is_destroyed_once) {
  {
    ErrorOr<Counted> first = Counted();
    BOOST_TEST(Counted::s_there == 1);
    ErrorOr<Counted> second = std::move(first);
    BOOST_TEST(Counted::s_there == 2);
    BOOST_TEST(second->holds);
    BOOST_TEST(!first->holds);
    first = Failed();
    BOOST_TEST(Counted::s_there == 1);
    BOOST_TEST(first.error().code == CUDA_ERROR_NOT_FOUND);
    first = std::move(second);
    BOOST_TEST(first->holds);
    BOOST_TEST(first.error().ok());
    ErrorOr<Counted>& itself = first;
    first = std::move(itself);
    BOOST_TEST(first->holds);
    ErrorOr<Counted> third = Failed();
    second = std::move(third);
    BOOST_TEST(!second.ok());
    BOOST_TEST(Counted::s_there == 1);
  }
  BOOST_TEST(Counted::s_there == 0);
}

// What is not ok() is no value.
BOOST_AUTO_TEST_CASE(of_an_object_of_the_core) {
  const ErrorOr<cuguest::SharedContext> none = cuguest::SharedContext();
  BOOST_TEST(!none.ok());
  BOOST_TEST(none.error().code == CUDA_ERROR_INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(becomes_a_status) {
  const auto value_of = [](ErrorOr<std::unique_ptr<int>> made) -> absl::StatusOr<int> {
    CUGUEST_ASSIGN_OR_RETURN(const std::unique_ptr<int> value, std::move(made));
    return *value;
  };
  BOOST_TEST(value_of(std::make_unique<int>(7)).value() == 7);
  const absl::Status status = value_of(Failed()).status();
  BOOST_TEST((status == cuguest::ToStatus(Failed())), status);
  BOOST_TEST((status.code() == absl::StatusCode::kNotFound), status);
}

BOOST_AUTO_TEST_CASE(a_value_that_is_not_there) {
  if (std::getenv("CUGUEST_TEST_READS_NOTHING") != nullptr) {
    const ErrorOr<int> none = Failed();
    std::_Exit(*none);
  }
  const cudasim_test::Ended ended = cudasim_test::RunSelf(
      {"--run_test=error_or/a_value_that_is_not_there"}, {"CUGUEST_TEST_READS_NOTHING=1"});
  BOOST_TEST(ended.code != 0);
}

BOOST_AUTO_TEST_SUITE_END()
