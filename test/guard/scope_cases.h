// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What repair_table_test.cc and scope_order_test.cc share: one interface to every scope of
// the library, of C++ and of C, and contexts that are known by a letter.

#ifndef CUGUEST_TEST_GUARD_SCOPE_CASES_H_
#define CUGUEST_TEST_GUARD_SCOPE_CASES_H_

#include <cuda.h>

#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuguest/c.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/context_scope.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/exact_guard.h"
#include "cuguest/host_scope.h"
#include "cuguest/location.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/primary_context.h"
#include "cuguest/thread_home.h"
#include "test/support/test.h"

namespace scope_cases {

using cuguest::ExactGuard;

constexpr auto kOutOfTurn = cuguest::Incident::Kind::kOutOfTurn;
constexpr CUresult kNotReady = CUDA_ERROR_NOT_READY;

enum class Kind { kElide, kAlwaysPush, kByRef, kScope, kExact, kNone, kHome, kHost, kCapture };
enum class Language { kCpp, kC };

constexpr Kind kAllKinds[] = {Kind::kElide, Kind::kAlwaysPush, Kind::kByRef,
                              Kind::kScope, Kind::kExact,      Kind::kNone,
                              Kind::kHost,  Kind::kHome,       Kind::kCapture};

inline bool Has(Language language, Kind kind) {
  return language == Language::kCpp || (kind != Kind::kScope && kind != Kind::kExact);
}
inline bool HasContext(Kind kind) {
  return kind != Kind::kNone && kind != Kind::kHost && kind != Kind::kCapture;
}
inline bool Elides(Kind kind) {
  return kind == Kind::kElide || kind == Kind::kByRef || kind == Kind::kScope;
}
inline std::string NameOf(Language language, Kind kind) {
  constexpr const char* kNames[] = {"elide", "push", "ref",  "scope",  "exact",
                                    "none",  "home", "host", "capture"};
  return std::string(language == Language::kC ? "C " : "") + kNames[static_cast<int>(kind)];
}

// One object of either language, which enters once.
class Scope {
 public:
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  virtual ~Scope() = default;

  // Where no context is meant, a capture guard takes this for its mode.
  static CUstreamCaptureMode ModeOf(CUcontext mode) {
    return static_cast<CUstreamCaptureMode>(reinterpret_cast<std::size_t>(mode));
  }
  static CUcontext AsContext(CUstreamCaptureMode mode) {
    return reinterpret_cast<CUcontext>(static_cast<std::size_t>(mode));
  }

  virtual CUresult Enter(CUcontext context, cuguest::Location where) = 0;
  virtual CUresult MoveTo(CUcontext, cuguest::Location) { return CUDA_ERROR_NOT_SUPPORTED; }
  virtual CUresult Reassert() { return CUDA_ERROR_NOT_SUPPORTED; }
  // By the function that gives a code, Restore() or Leave().
  virtual CUresult End() = 0;
  // By the destructor or the cleanup function. What was the object's memory is overwritten then if
  // `overwrites`.
  virtual void Drop(bool overwrites) = 0;
  // What a second End() gives, which does nothing.
  virtual CUresult CodeOfSecondEnd() const = 0;
};

// A ThreadHome with the words of the others.
class Home {
 public:
  Home(const cuguest::ContextRef& context, cuguest::Location where)
      : home_(context, cuguest::ThreadHome::Keep::kNothing, cuguest::ThreadHome::IfOver::kRefuse,
              where) {}
  CUresult result() const { return home_.error().code; }
  CUresult Reassert() { return home_.Check().code; }
  CUresult Leave() { return home_.Leave().code; }

 private:
  cuguest::ThreadHome home_;
};

template <typename Object>
class CppScope final : public Scope {
 public:
  using Construct = Object* (*)(void* at, CUcontext context, cuguest::Location where);
  explicit CppScope(Construct construct, bool moves_by_ref = false)
      : construct_(construct), moves_by_ref_(moves_by_ref) {}
  ~CppScope() override { Drop(false); }

  CUresult Enter(CUcontext context, cuguest::Location where) override {
    object_ = construct_(storage_, context, where);
    return object_->result();
  }
  CUresult MoveTo(CUcontext context, cuguest::Location where) override {
    if constexpr (std::is_same_v<Object, cuguest::ContextGuard>) {
      if (!moves_by_ref_) return object_->MoveTo(context, where);
      return object_->MoveTo(cuguest::ContextRef::Borrow(context), where);
    }
    return Scope::MoveTo(context, where);
  }
  CUresult Reassert() override {
    if constexpr (std::is_same_v<Object, cuguest::ContextGuard> ||
                  std::is_same_v<Object, cuguest::ContextScope> || std::is_same_v<Object, Home> ||
                  std::is_same_v<Object, ExactGuard>) {
      return object_->Reassert();
    }
    return Scope::Reassert();
  }
  CUresult End() override { return object_->Leave(); }
  void Drop(bool overwrites) override {
    if (Object* const object = std::exchange(object_, nullptr)) object->~Object();
    if (overwrites) std::memset(storage_, 0xDD, sizeof(storage_));
  }
  CUresult CodeOfSecondEnd() const override {
    return std::is_same_v<Object, cuguest::ContextScope> ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
  }

 private:
  const Construct construct_;
  const bool moves_by_ref_;
  alignas(Object) unsigned char storage_[sizeof(Object)];
  Object* object_ = nullptr;
};

template <typename Storage>
class CScope final : public Scope {
 public:
  using EnterFunction = int (*)(Storage*, CUcontext, cuguest::Location);
  CScope(EnterFunction enter, int (*leave)(Storage*), void (*cleanup)(Storage*),
         bool moves_by_ref = false)
      : enter_(enter), leave_(leave), cleanup_(cleanup), moves_by_ref_(moves_by_ref) {}
  ~CScope() override { Drop(false); }

  CUresult Enter(CUcontext context, cuguest::Location where) override {
    return static_cast<CUresult>(enter_(&storage_, context, where));
  }
  CUresult MoveTo(CUcontext context, cuguest::Location where) override {
    if constexpr (std::is_same_v<Storage, cuguest_guard>) {
      cuguest_ref ref = CUGUEST_REF_INIT;
      const int code = !moves_by_ref_
                           ? cuguest_guard_move_to(&storage_, context, where.file, where.line)
                       : cuguest_ref_borrow(&ref, context) == 0
                           ? cuguest_guard_move_to_ref(&storage_, &ref, where.file, where.line)
                           : static_cast<int>(CUDA_ERROR_INVALID_CONTEXT);
      return static_cast<CUresult>(code);
    }
    return Scope::MoveTo(context, where);
  }
  CUresult Reassert() override {
    if constexpr (std::is_same_v<Storage, cuguest_guard>) {
      return static_cast<CUresult>(cuguest_guard_reassert(&storage_));
    } else if constexpr (std::is_same_v<Storage, cuguest_thread_home>) {
      return static_cast<CUresult>(cuguest_thread_home_check(&storage_));
    }
    return Scope::Reassert();
  }
  CUresult End() override { return static_cast<CUresult>(leave_(&storage_)); }
  void Drop(bool overwrites) override {
    if (!std::exchange(is_dropped_, true)) cleanup_(&storage_);
    if (overwrites) std::memset(&storage_, 0xDD, sizeof(storage_));
  }
  CUresult CodeOfSecondEnd() const override { return CUDA_ERROR_ILLEGAL_STATE; }

 private:
  const EnterFunction enter_;
  int (*const leave_)(Storage*);
  void (*const cleanup_)(Storage*);
  const bool moves_by_ref_;
  Storage storage_ = CUGUEST_INIT(Storage);
  bool is_dropped_ = false;
};

inline std::unique_ptr<Scope> MakeCpp(Kind kind) {
  using cuguest::ContextRef;
  using cuguest::GuardMode;
  using cuguest::Location;
  using Guards = CppScope<cuguest::ContextGuard>;
  using Scopes = CppScope<cuguest::ContextScope>;
  using Exacts = CppScope<ExactGuard>;
  using Nones = CppScope<cuguest::NoContextGuard>;
  using Hosts = CppScope<cuguest::HostScope>;
  using Captures = CppScope<cuguest::CaptureModeGuard>;
  switch (kind) {
    case Kind::kElide:
      return std::make_unique<Guards>([](void* at, CUcontext context, Location where) {
        return new (at) cuguest::ContextGuard(context, GuardMode::kElide, where);
      });
    case Kind::kAlwaysPush:
      return std::make_unique<Guards>([](void* at, CUcontext context, Location where) {
        return new (at) cuguest::ContextGuard(context, GuardMode::kAlwaysPush, where);
      });
    case Kind::kByRef:
      return std::make_unique<Guards>(
          [](void* at, CUcontext context, Location where) {
            return new (at)
                cuguest::ContextGuard(ContextRef::Borrow(context), GuardMode::kElide, where);
          },
          true);
    case Kind::kScope:
      return std::make_unique<Scopes>([](void* at, CUcontext context, Location where) {
        auto* const scope = new (at) cuguest::ContextScope;
        static_cast<void>(scope->Enter(context, GuardMode::kElide, where));
        return scope;
      });
    case Kind::kExact:
      return std::make_unique<Exacts>([](void* at, CUcontext context, Location where) {
        return new (at) ExactGuard(context, where);
      });
    case Kind::kNone:
      return std::make_unique<Nones>([](void* at, CUcontext, Location where) {
        return new (at) cuguest::NoContextGuard(where);
      });
    case Kind::kHome:
      return std::make_unique<CppScope<Home>>([](void* at, CUcontext context, Location where) {
        return new (at) Home(ContextRef::Borrow(context), where);
      });
    case Kind::kHost:
      return std::make_unique<Hosts>(
          [](void* at, CUcontext, Location where) { return new (at) cuguest::HostScope(where); });
    case Kind::kCapture:
      return std::make_unique<Captures>([](void* at, CUcontext mode, Location where) {
        return new (at) cuguest::CaptureModeGuard(Scope::ModeOf(mode), where);
      });
  }
  return nullptr;
}

inline std::unique_ptr<Scope> MakeC(Kind kind) {
  using cuguest::Location;
  using Guards = CScope<cuguest_guard>;
  switch (kind) {
    case Kind::kElide:
      return std::make_unique<Guards>(
          [](cuguest_guard* guard, CUcontext context, Location where) {
            return cuguest_guard_enter(guard, context, CUGUEST_ELIDE, where.file, where.line);
          },
          &cuguest_guard_leave, &cuguest_guard_cleanup);
    case Kind::kAlwaysPush:
      return std::make_unique<Guards>(
          [](cuguest_guard* guard, CUcontext context, Location where) {
            return cuguest_guard_enter(guard, context, CUGUEST_ALWAYS_PUSH, where.file, where.line);
          },
          &cuguest_guard_leave, &cuguest_guard_cleanup);
    case Kind::kByRef:
      return std::make_unique<Guards>(
          [](cuguest_guard* guard, CUcontext context, Location where) {
            cuguest_ref ref = CUGUEST_REF_INIT;
            const int code = cuguest_ref_borrow(&ref, context);
            if (code != 0) return code;
            return cuguest_guard_enter_ref(guard, &ref, CUGUEST_ELIDE, where.file, where.line);
          },
          &cuguest_guard_leave, &cuguest_guard_cleanup, true);
    case Kind::kNone:
      return std::make_unique<CScope<cuguest_no_context_guard>>(
          [](cuguest_no_context_guard* guard, CUcontext, Location where) {
            return cuguest_no_context_guard_enter(guard, where.file, where.line);
          },
          &cuguest_no_context_guard_leave, &cuguest_no_context_guard_cleanup);
    case Kind::kHome:
      return std::make_unique<CScope<cuguest_thread_home>>(
          [](cuguest_thread_home* home, CUcontext context, Location where) {
            cuguest_ref ref = CUGUEST_REF_INIT;
            const int code = cuguest_ref_borrow(&ref, context);
            if (code != 0) return code;
            return cuguest_thread_home_enter_ref(home, &ref, 0, where.file, where.line);
          },
          &cuguest_thread_home_leave, &cuguest_thread_home_cleanup);
    case Kind::kHost:
      return std::make_unique<CScope<cuguest_host_scope>>(
          [](cuguest_host_scope* scope, CUcontext, Location where) {
            return cuguest_host_scope_enter(scope, where.file, where.line);
          },
          &cuguest_host_scope_leave, &cuguest_host_scope_cleanup);
    case Kind::kCapture:
      return std::make_unique<CScope<cuguest_capture_guard>>(
          [](cuguest_capture_guard* guard, CUcontext mode, Location where) {
            return cuguest_capture_guard_enter(guard, Scope::ModeOf(mode), where.file, where.line);
          },
          &cuguest_capture_guard_leave, &cuguest_capture_guard_cleanup);
    case Kind::kScope:
    case Kind::kExact:
      break;
  }
  return nullptr;
}

inline std::unique_ptr<Scope> Make(Language language, Kind kind) {
  return language == Language::kCpp ? MakeCpp(kind) : MakeC(kind);
}

// Contexts by their letters, and P, the device's primary context.
class Cast {
 public:
  explicit Cast(const std::string& letters) {
    for (const char letter : letters) own_.emplace(letter, 0);
    primary_ = cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(0));
  }
  CUcontext at(char letter) const { return letter == 'P' ? primary_.get() : own_.at(letter).get(); }
  // Destroys T as a callee would; it comes back for the next case.
  void DestroyT() {
    BOOST_REQUIRE(cuguest_test::TheDriver().CtxDestroy(at('T')) == CUDA_SUCCESS);
    t_is_dead_ = true;
  }
  void ReviveT() {
    if (!std::exchange(t_is_dead_, false)) return;
    own_.at('T').release();
    own_.erase('T');
    own_.emplace('T', 0);
  }
  void Set(const std::string& stack) const {
    std::vector<CUcontext> entries;
    for (const char letter : stack) entries.push_back(at(letter));
    cuguest_test::SetStack(entries);
  }
  std::string Get() const {
    std::string letters;
    for (const CUcontext entry : cuguest_test::GetStack()) letters += LetterOf(entry);
    return letters;
  }
  char LetterOf(CUcontext context) const {
    if (context == nullptr) return '0';
    if (context == primary_.get()) return 'P';
    for (const auto& [letter, own] : own_) {
      if (own.get() == context) return letter;
    }
    return '?';
  }
  char Current() const {
    CUcontext current = nullptr;
    static_cast<void>(cuguest_test::TheDriver().CtxGetCurrent(&current));
    return LetterOf(current);
  }

 private:
  std::map<char, cuguest_test::OwnContext> own_;
  cuguest::PrimaryContext primary_;
  bool t_is_dead_ = false;
};

// What a callee does, one step a character pair: "+C" pushes C, "=P" replaces the top by
// P, "-" pops, "!" destroys T, "0" is cuCtxSetCurrent(nullptr).
inline void Commit(Cast& cast, const std::string& fault) {
  const cuguest::Driver& driver = cuguest_test::TheDriver();
  CUcontext popped = nullptr;
  for (std::size_t i = 0; i < fault.size(); ++i) {
    CUresult code = CUDA_SUCCESS;
    switch (fault[i]) {
      case '+':
        code = driver.CtxPushCurrent(cast.at(fault[++i]));
        break;
      case '=':
        code = driver.CtxSetCurrent(cast.at(fault[++i]));
        break;
      case '-':
        code = driver.CtxPopCurrent(&popped);
        break;
      case '0':
        code = driver.CtxSetCurrent(nullptr);
        break;
      case '!':
        cast.DestroyT();
        break;
    }
    // A pop that meets an empty stack is part of some faults.
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_INVALID_CONTEXT) {
      BOOST_FAIL("the callee's step failed with " << code);
    }
  }
}

// The keys of the combinations that went wrong: counted, and the first few kept to be printed.
class Wrong {
 public:
  void Add(const std::string& key) {
    if (count_++ < 10) text_ += "\n  " + key;
    if (NamesScopeOfC(key)) ++count_of_c_;
  }
  long count() const { return count_; }
  long count_of_c() const { return count_of_c_; }
  const std::string& text() const { return text_; }

 private:
  // By its name, see NameOf().
  static bool NamesScopeOfC(const std::string& key) {
    const std::size_t at = key.find("C ");
    return at != std::string::npos && key[at + 2] >= 'a' && key[at + 2] <= 'z';
  }

  long count_ = 0;
  long count_of_c_ = 0;
  std::string text_;
};

// The first few are printed, and not one assertion for each combination.
inline void RequireNone(const char* what, long walked, long at_least, const Wrong& wrong) {
  BOOST_TEST_MESSAGE(what << ": walked " << walked << ", wrong " << wrong.count());
  BOOST_TEST(walked >= at_least);
  BOOST_TEST(wrong.count() == 0, what << ": " << wrong.count() << " of " << walked << " are wrong, "
                                      << wrong.count_of_c()
                                      << " with scopes of C:" << wrong.text());
}

}  // namespace scope_cases

#endif  // CUGUEST_TEST_GUARD_SCOPE_CASES_H_
