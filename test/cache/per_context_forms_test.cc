// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same cases for every form that the cache has: PerContext with makers that return ErrorOr or
// absl::StatusOr, and cuguest_per_context. A case is told nothing of the form.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuguest/c.h"
#include "cuguest/error_or.h"
#include "test/cache/per_context.h"

BOOST_AUTO_TEST_SUITE(per_context_forms)

using namespace per_context_test;

namespace {

using cuguest::ErrorOr;

// Returns 0 and writes the value, which is made with the context current, or returns a code.
using Make = std::function<int(const ContextRef& context, int* value)>;
using Pin = std::shared_ptr<const int>;

class Form {
 public:
  Form() = default;
  Form(const Form&) = delete;
  Form& operator=(const Form&) = delete;
  virtual ~Form() = default;

  virtual const char* name() const = 0;
  // 0, and the value is pinned as long as `pin` is, or a code.
  virtual int Get(const ContextRef& context, const Make& make, Pin* pin) = 0;
  virtual Pin Find(const ContextRef& context) = 0;
  virtual bool Forget(const ContextRef& context) = 0;
  virtual bool ForgetDestroyed(const ContextRef& context) = 0;
  virtual std::size_t ForgetAll() = 0;
  virtual std::size_t DropDead() = 0;
  virtual std::size_t size() const = 0;

  int Get(const ContextRef& context, const Make& make) {
    Pin pin;
    return Get(context, make, &pin);
  }
  Ledger& ledger() { return ledger_; }

 protected:
  Ledger ledger_;
};

// A value knows where it was made.
struct Number {
  Number(const ContextRef& context, int number, Ledger* ledger)
      : in(context), value(number), seen(ledger) {
    ++seen->made;
  }
  Number(Number&& other) noexcept
      : in(other.in), value(other.value), seen(std::exchange(other.seen, nullptr)) {}
  Number& operator=(Number&&) = delete;
  ~Number() {
    if (seen == nullptr) return;
    if (is_over) {
      ++seen->given_up;
    } else {
      if (CurrentContext() != in.get()) ++seen->elsewhere;
      ++seen->destroyed;
    }
  }
  void Leak() noexcept { is_over = true; }

  ContextRef in;
  int value;
  Ledger* seen;
  bool is_over = false;
};

template <template <typename> class Result>
class InCpp : public Form {
  static constexpr bool kIsStatus = std::is_same_v<Result<int>, absl::StatusOr<int>>;

 public:
  const char* name() const override { return kIsStatus ? "absl::StatusOr" : "ErrorOr"; }
  int Get(const ContextRef& context, const Make& make, Pin* pin) override {
    auto got = cache_.GetOrMake(context, [&](const ContextRef& at) -> Result<Number> {
      int value = 0;
      const auto code = static_cast<CUresult>(make(at, &value));
      if (code == CUDA_SUCCESS) return Number(at, value, &ledger_);
      cuguest::Error error;
      error.code = code;
      if constexpr (kIsStatus) {
        return cuguest::ToStatus(error);
      } else {
        return error;
      }
    });
    static_assert(std::is_same_v<decltype(got), Result<Cache::Pin>>);
    if (got.ok()) *pin = Keep(*std::move(got));
    if constexpr (kIsStatus) {
      return got.ok() ? CUDA_SUCCESS : cuguest::CodeOf(got.status()).value();
    } else {
      return got.error().code;
    }
  }
  Pin Find(const ContextRef& context) override { return Keep(cache_.Find(context)); }
  bool Forget(const ContextRef& context) override { return cache_.Forget(context); }
  bool ForgetDestroyed(const ContextRef& context) override {
    return cache_.ForgetDestroyed(context);
  }
  std::size_t ForgetAll() override { return cache_.ForgetAll(); }
  std::size_t DropDead() override { return cache_.DropDead(); }
  std::size_t size() const override { return cache_.size(); }

 private:
  using Cache = PerContext<Number>;

  static Pin Keep(Cache::Pin pin) {
    if (!pin) return nullptr;
    auto held = std::make_shared<Cache::Pin>(std::move(pin));
    const int* const value = &(*held)->value;
    return {std::move(held), value};
  }

  Cache cache_;
};

class InC : public Form {
 public:
  ~InC() override { cuguest_per_context_cleanup(&cache_); }

  const char* name() const override { return "c.h"; }
  int Get(const ContextRef& context, const Make& make, Pin* pin) override {
    const cuguest_ref ref = RefTo(context);
    auto held = NewPin();
    const Make* const before = std::exchange(t_make, &make);
    const int code = cuguest_per_context_get(&cache_, &type_, &ref, held.get());
    t_make = before;
    if (code == 0) *pin = Keep(std::move(held));
    return code;
  }
  Pin Find(const ContextRef& context) override {
    const cuguest_ref ref = RefTo(context);
    auto held = NewPin();
    const int code = cuguest_per_context_find(&cache_, &ref, held.get());
    BOOST_TEST((code == 0 || code == CUDA_ERROR_NOT_FOUND));
    return code == 0 ? Keep(std::move(held)) : nullptr;
  }
  bool Forget(const ContextRef& context) override {
    const cuguest_ref ref = RefTo(context);
    return WasThere(cuguest_per_context_forget(&cache_, &ref));
  }
  bool ForgetDestroyed(const ContextRef& context) override {
    const cuguest_ref ref = RefTo(context);
    return WasThere(cuguest_per_context_forget_destroyed(&cache_, &ref));
  }
  std::size_t ForgetAll() override { return CountBy(&cuguest_per_context_forget_all); }
  std::size_t DropDead() override { return CountBy(&cuguest_per_context_drop_dead); }
  std::size_t size() const override { return cuguest_per_context_size(&cache_); }

 private:
  struct Value {
    CUcontext in;
    int value;
  };
  static cuguest_ref RefTo(const ContextRef& context) {
    return {sizeof(cuguest_ref), context.get(), context.id()};
  }
  static int MakeValue(const cuguest_ref* context, void* place, void* user) {
    auto* const value = static_cast<Value*>(place);
    if (value->in != nullptr || value->value != 0) return CUDA_ERROR_UNKNOWN;  // it is not zeros
    value->in = context->context;
    const ContextRef at = ContextRef::Borrow(context->context);
    const int code = at.id() == context->id ? (*t_make)(at, &value->value) : CUDA_ERROR_UNKNOWN;
    if (code == 0) ++static_cast<InC*>(user)->ledger_.made;
    return code;
  }
  static void Destroy(void* value, void* user) {
    Ledger& ledger = static_cast<InC*>(user)->ledger_;
    if (CurrentContext() != static_cast<Value*>(value)->in) ++ledger.elsewhere;
    ++ledger.destroyed;
  }
  static void Leak(void* /*value*/, void* user) { ++static_cast<InC*>(user)->ledger_.given_up; }

  static std::unique_ptr<cuguest_per_context_pin> NewPin() {
    return std::make_unique<cuguest_per_context_pin>(
        cuguest_per_context_pin CUGUEST_INIT(cuguest_per_context_pin));
  }
  static Pin Keep(std::unique_ptr<cuguest_per_context_pin> pin) {
    const std::shared_ptr<cuguest_per_context_pin> held(pin.release(),
                                                        [](cuguest_per_context_pin* ending) {
                                                          cuguest_per_context_pin_cleanup(ending);
                                                          delete ending;
                                                        });
    return {held, &static_cast<Value*>(cuguest_per_context_value(held.get()))->value};
  }
  static bool WasThere(int code) {
    BOOST_TEST((code == 0 || code == CUDA_ERROR_NOT_FOUND));
    return code == 0;
  }
  std::size_t CountBy(int (*drop)(cuguest_per_context*, size_t*)) {
    size_t count = 0;
    BOOST_TEST(drop(&cache_, &count) == 0);
    return count;
  }

  static thread_local const Make* t_make;
  const cuguest_per_context_type type_ = {sizeof(type_), sizeof(Value), 0,   &MakeValue,
                                          &Destroy,      &Leak,         this};
  cuguest_per_context cache_ = {};
};
thread_local const Make* InC::t_make = nullptr;

// use(form), of each form; what it has made is ended then, and nothing in the wrong context.
template <typename Use>
void WithEach(const Use& use) {
  const std::vector<std::function<std::unique_ptr<Form>()>> forms = {
      [] { return std::make_unique<InCpp<ErrorOr>>(); },
      [] { return std::make_unique<InCpp<absl::StatusOr>>(); },
      [] { return std::make_unique<InC>(); },
  };
  for (const auto& make_form : forms) {
    const std::unique_ptr<Form> form = make_form();
    BOOST_TEST_CONTEXT(form->name()) {
      use(*form);
      BOOST_TEST(form->ledger().elsewhere == 0);
      static_cast<void>(form->ForgetAll());
      BOOST_TEST(form->ledger().alive() == 0);
      BOOST_TEST(form->size() == 0U);
      BOOST_TEST(GetStack().empty());
    }
  }
}

Make Makes(int value) {
  return [value](const ContextRef& context, int* made) {
    *made = value;
    return CurrentContext() == context.get() ? 0 : CUDA_ERROR_UNKNOWN;
  };
}
int MakesNothing(const ContextRef& /*context*/, int* /*made*/) { return CUDA_ERROR_UNKNOWN; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_value_is_made_once) {
  const OwnContext a;
  const OwnContext b;
  const ContextRef in_a = ContextRef::Borrow(a.get());
  const ContextRef in_b = ContextRef::Borrow(b.get());
  WithEach([&](Form& form) {
    BOOST_TEST(form.size() == 0U);
    BOOST_TEST(form.Find(in_a) == nullptr);
    BOOST_TEST(!form.Forget(in_a));
    Pin made;
    BOOST_TEST_REQUIRE(form.Get(in_a, Makes(7), &made) == 0);
    BOOST_TEST(*made == 7);
    Pin found;
    BOOST_TEST(form.Get(in_a, &MakesNothing, &found) == 0);
    BOOST_TEST(found.get() == made.get());
    BOOST_TEST(form.Find(in_a).get() == made.get());
    BOOST_TEST(form.Find(in_b) == nullptr);
    BOOST_TEST(form.Get(in_b, Makes(8), &found) == 0);
    BOOST_TEST(*found == 8);
    BOOST_TEST(form.size() == 2U);
    BOOST_TEST(form.ledger().made == 2);
    made.reset();
    found.reset();
    BOOST_TEST(form.ForgetAll() == 2U);
    BOOST_TEST(form.ledger().destroyed == 2);
  });
}

BOOST_AUTO_TEST_CASE(a_reset_context_gets_another,
                     *cuguest_test::NeedsDriver(12000, "cuCtxGetId")) {
  WithEach([](Form& form) {
    PrimaryContext primary = PrimaryContext::Retain(kFirst);
    const ContextRef before = primary.context();
    BOOST_TEST(form.Get(before, Makes(1)) == 0);
    BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
    BOOST_TEST(primary.Release().ok());
    BOOST_TEST(form.Get(before, Makes(1)) == 0);  // it is not asked whether that lives
    BOOST_TEST(form.DropDead() == 1U);
    BOOST_TEST(form.ledger().given_up == 1);
    BOOST_TEST(form.Get(before, Makes(1)) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    primary = PrimaryContext::Retain(kFirst);
    BOOST_TEST(form.Find(primary.context()) == nullptr);
    Pin made;
    BOOST_TEST_REQUIRE(form.Get(primary.context(), Makes(2), &made) == 0);
    BOOST_TEST(*made == 2);
    BOOST_TEST(form.ledger().made == 2);
    made.reset();
    BOOST_TEST(form.Forget(primary.context()));
    BOOST_TEST(form.ledger().destroyed == 1);
  });
}

BOOST_AUTO_TEST_CASE(what_names_no_context) {
  WithEach([](Form& form) {
    BOOST_TEST(form.Get(ContextRef(), Makes(1)) == CUDA_ERROR_INVALID_CONTEXT);
    BOOST_TEST(form.Find(ContextRef()) == nullptr);
    BOOST_TEST(!form.Forget(ContextRef()));
    BOOST_TEST(!form.ForgetDestroyed(ContextRef()));
    BOOST_TEST(form.ledger().made == 0);
  });
}

BOOST_AUTO_TEST_CASE(a_maker_that_fails) {
  const OwnContext a;
  const ContextRef in_a = ContextRef::Borrow(a.get());
  WithEach([&](Form& form) {
    const auto fails = [](const ContextRef&, int* value) {
      *value = 99;  // what it leaves is not the next one's
      return CUDA_ERROR_DEVICE_UNAVAILABLE;
    };
    for (int i = 0; i < 2; ++i) BOOST_TEST(form.Get(in_a, fails) == CUDA_ERROR_DEVICE_UNAVAILABLE);
    BOOST_TEST(form.size() == 0U);
    BOOST_TEST(form.Find(in_a) == nullptr);
    BOOST_TEST(form.Get(in_a, Makes(1)) == 0);
    BOOST_TEST(form.ledger().made == 1);
  });
}

BOOST_AUTO_TEST_CASE(a_maker_that_asks_for_itself) {
  const OwnContext a;
  const OwnContext b;
  const ContextRef in_a = ContextRef::Borrow(a.get());
  const ContextRef in_b = ContextRef::Borrow(b.get());
  WithEach([&](Form& form) {
    int inner = 0, of_other = 0;
    const auto asks = [&](const ContextRef& context, int* value) {
      inner = form.Get(context, Makes(2));
      of_other = form.Get(in_b, [&](const ContextRef& other, int* made) {
        *made = form.Get(context, Makes(3));
        return CurrentContext() == other.get() ? 0 : CUDA_ERROR_UNKNOWN;
      });
      return Makes(1)(context, value);
    };
    Pin made;
    BOOST_TEST_REQUIRE(form.Get(in_a, asks, &made) == 0);
    BOOST_TEST(*made == 1);
    BOOST_TEST(inner == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(of_other == 0);
    BOOST_TEST(*form.Find(in_b) == static_cast<int>(CUDA_ERROR_ILLEGAL_STATE));
  });
}

BOOST_AUTO_TEST_CASE(a_maker_that_leaves_a_push) {
  const OwnContext a;
  const OwnContext x;
  const ContextRef in_a = ContextRef::Borrow(a.get());
  WithEach([&](Form& form) {
    SetStack({x.get()});
    const auto pushes = [&](const ContextRef& context, int* value) {
      const int code = Makes(5)(context, value);
      return code != 0 ? code : static_cast<int>(TheDriver().CtxPushCurrent(x.get()));
    };
    BOOST_TEST(form.Get(in_a, pushes) == 0);
    BOOST_TEST(GetStack() == Stack{x.get()});
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1U);
    BOOST_TEST((incidents[0].kind == cuguest::Incident::Kind::kLeakedPush));
    BOOST_TEST(*form.Find(in_a) == 5);
    SetStack({});
  });
}

// The call returns in the child, too, which keeps nothing.
BOOST_AUTO_TEST_CASE(a_maker_that_forks) {
  const OwnContext a;
  const OwnContext b;
  const ContextRef in_a = ContextRef::Borrow(a.get());
  const ContextRef in_b = ContextRef::Borrow(b.get());
  WithEach([&](Form& form) {
    BOOST_TEST(form.Get(in_b, Makes(2)) == 0);
    pid_t child = 0;
    const int code = form.Get(in_a, [&](const ContextRef& context, int* value) {
      const int made = Makes(1)(context, value);
      child = fork();
      return made;
    });
    if (child == 0) {
      const Pin of_b = form.Find(in_b);
      const bool is_right = code == CUDA_ERROR_NOT_INITIALIZED && form.ledger().given_up == 1 &&
                            form.Find(in_a) == nullptr && of_b != nullptr && *of_b == 2 &&
                            form.Get(in_a, Makes(3)) == CUDA_ERROR_NOT_INITIALIZED &&
                            !form.Forget(in_b) && form.DropDead() == 0 && form.size() == 1;
      _exit(is_right ? 0 : 1);
    }
    int status = -1;
    BOOST_TEST(waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
    BOOST_TEST(code == 0);
    BOOST_TEST(*form.Find(in_a) == 1);
  });
}

BOOST_AUTO_TEST_CASE(a_pin_outlives_the_drop) {
  const OwnContext a;
  const ContextRef in_a = ContextRef::Borrow(a.get());
  WithEach([&](Form& form) {
    Pin pin;
    BOOST_TEST_REQUIRE(form.Get(in_a, Makes(1), &pin) == 0);
    BOOST_TEST(form.Forget(in_a));
    BOOST_TEST(form.Find(in_a) == nullptr);
    BOOST_TEST(!form.Forget(in_a));
    BOOST_TEST(*pin == 1);
    BOOST_TEST(form.ledger().destroyed == 0);
    BOOST_TEST(form.Get(in_a, Makes(2)) == 0);
    std::thread([&] { pin.reset(); }).join();
    BOOST_TEST(form.Forget(in_a));
    BOOST_TEST(form.ledger().destroyed == 2);
  });
}

BOOST_AUTO_TEST_CASE(a_destroyed_context_is_not_entered) {
  WithEach([](Form& form) {
    OwnContext a;
    const ContextRef in_a = ContextRef::Borrow(a.get());
    BOOST_TEST(form.Get(in_a, Makes(1)) == 0);
    BOOST_TEST(RAW(cuCtxDestroy)(a.release()) == CUDA_SUCCESS);
    BOOST_TEST(form.ForgetDestroyed(in_a));
    BOOST_TEST(!form.ForgetDestroyed(in_a));
    BOOST_TEST(form.ledger().given_up == 1);
    BOOST_TEST(form.ledger().destroyed == 0);
  });
}

BOOST_AUTO_TEST_CASE(many_threads_use_one_cache) {
  const OwnContext a;
  const OwnContext b;
  const ContextRef refs[] = {ContextRef::Borrow(a.get()), ContextRef::Borrow(b.get())};
  constexpr int kThreads = 16;
  WithEach([&](Form& form) {
    std::atomic<int> ready{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        for (int round = 0; round < 200; ++round) {
          const int index = (i + round) % 2;
          Pin pin;
          if (form.Get(refs[index], Makes(index), &pin) != 0 || *pin != index) ++wrong;
          if (i == 0 && round % 10 == 9) static_cast<void>(form.Forget(refs[index]));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(wrong == 0);
    BOOST_TEST(form.ledger().made > 2);
    BOOST_TEST(form.ledger().made <= 2 + 20);
  });
}

BOOST_AUTO_TEST_SUITE_END()
