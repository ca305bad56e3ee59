// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table that has no value and makes none. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_INTERNAL_PER_CONTEXT_TABLE_H_
#define CUGUEST_LIB_NO_CUDA_INTERNAL_PER_CONTEXT_TABLE_H_

#include <cstddef>

#include "cuguest/context_ref.h"
#include "cuguest/error.h"
#include "lib/no_cuda/error.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct PinStripe;

class PerContextTable {
 public:
  struct Type {
    std::size_t size;
    std::size_t alignment;
    void (*end)(const Type& type, void* value, bool is_inside);
  };
  struct Held {
    void* value;
    PinStripe* stripe;
  };
  class Making {
   public:
    CUGUEST_HIDE Making(PerContextTable* /*table*/, const ContextRef& /*context*/,
                        CUresult /*entered*/) noexcept
        : error_(NotSupported("make the value of a context")) {}
    [[nodiscard]] CUGUEST_HIDE const Error& error() const noexcept { return error_; }
    [[nodiscard]] CUGUEST_HIDE Held held() const noexcept { return {nullptr, nullptr}; }
    [[nodiscard]] CUGUEST_HIDE void* storage() const noexcept { return nullptr; }
    CUGUEST_HIDE const Error& Publish() noexcept { return error_; }

   private:
    Error error_;
  };

  CUGUEST_HIDE explicit PerContextTable(const Type& /*type*/) noexcept {}
  PerContextTable(const PerContextTable&) = delete;
  PerContextTable& operator=(const PerContextTable&) = delete;
  CUGUEST_HIDE ~PerContextTable() = default;

  CUGUEST_HIDE static void Unpin(PinStripe* /*stripe*/) noexcept {}
  [[nodiscard]] CUGUEST_HIDE Held Find(const ContextRef& /*context*/) noexcept {
    return {nullptr, nullptr};
  }
  CUGUEST_HIDE bool Forget(const ContextRef& /*context*/, bool /*is_dead*/) { return false; }
  CUGUEST_HIDE std::size_t ForgetAll() { return 0; }
  CUGUEST_HIDE std::size_t DropDead() { return 0; }
  [[nodiscard]] CUGUEST_HIDE std::size_t size() const noexcept { return 0; }
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_INTERNAL_PER_CONTEXT_TABLE_H_
