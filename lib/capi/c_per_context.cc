// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Note [First use of a cache]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A cache is two words of zeros until a thread gets a value from it. That thread makes the table,
// writes the mark of the storage, and publishes the table by one compare-exchange. Of several that
// do so at the same time all write the same mark, one wins, and the others free what they have
// made. So nobody waits, and a child that was forked in the middle of it goes on. A copy of a cache
// that has a table has another storage's mark.

#include "cuguest/c.h"

#include <cstdlib>
#include <cstring>

#include "cuguest/internal/per_context_table.h"
#include "lib/capi/c_storage.h"
#include "lib/core/concurrency.h"
#include "lib/guard/inner_guard.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

constexpr Location kHere = {"(cuguest_per_context_get)", 0};

// What a caller gave, as far as it is there.
struct TypeOfC : PerContextTable::Type {
  explicit TypeOfC(const cuguest_per_context_type& type) noexcept
      : PerContextTable::Type{type.value_size,
                              type.alignment != 0 ? type.alignment : alignof(std::max_align_t),
                              &End},
        make(type.make),
        destroy(type.destroy),
        leak(type.leak),
        user(type.user) {}

  static CUresult Check(const cuguest_per_context_type* type) noexcept {
    constexpr std::size_t kNeeded =
        offsetof(cuguest_per_context_type, user) + sizeof(cuguest_per_context_type::user);
    const bool is_right = type != nullptr && (type->size == 0 || type->size >= kNeeded) &&
                          type->value_size != 0 && (type->alignment & (type->alignment - 1)) == 0 &&
                          type->make != nullptr && type->destroy != nullptr;
    return is_right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  bool operator==(const TypeOfC& other) const noexcept {
    return size == other.size && alignment == other.alignment && make == other.make &&
           destroy == other.destroy && leak == other.leak && user == other.user;
  }

  static void End(const Type& type, void* value, bool is_inside) noexcept {
    const auto& mine = static_cast<const TypeOfC&>(type);
    if (is_inside) {
      mine.destroy(value, mine.user);
    } else if (mine.leak != nullptr) {
      mine.leak(value, mine.user);
    }
  }

  decltype(cuguest_per_context_type::make) make;
  decltype(cuguest_per_context_type::destroy) destroy;
  decltype(cuguest_per_context_type::leak) leak;
  void* user;
};

struct Cache {
  explicit Cache(const TypeOfC& its_type) noexcept : type(its_type) {}

  const TypeOfC type;
  PerContextTable table{type};
};

// In a caller's storage: see Note [First use of a cache].
struct CacheWords {
  Atomic<unsigned long long> mark;
  Atomic<Cache*> cache;  // nullptr: there is none yet, or no longer
};

class CacheStorage {
 public:
  explicit CacheStorage(const cuguest_per_context* given) noexcept : given_(given) {
    static_assert(sizeof(CacheWords) <= sizeof(given->opaque));
  }

  // What is there, or nullptr if nothing is.
  CUresult Get(Cache** cache) const noexcept {
    *cache = nullptr;
    constexpr std::size_t kNeeded = offsetof(cuguest_per_context, opaque) + sizeof(CacheWords);
    if (given_ == nullptr || (given_->size != 0 && given_->size < kNeeded)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    Cache* const found = Words().cache.load(std::memory_order_acquire);
    if (found == nullptr) return CUDA_SUCCESS;
    const bool is_open =
        Words().mark.load(std::memory_order_relaxed) == MarkOf(given_) && found != Closing();
    if (!is_open) return CUDA_ERROR_ILLEGAL_STATE;
    *cache = found;
    return CUDA_SUCCESS;
  }

  // The same, made if nothing is there.
  CUresult GetOrOpen(const TypeOfC& type, Cache** cache) const noexcept {
    const CUresult code = Get(cache);
    if (code != CUDA_SUCCESS || *cache != nullptr) return code;
    void* const memory = std::malloc(sizeof(Cache));
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    Cache* const made = new (memory) Cache(type);
    Words().mark.store(MarkOf(given_), std::memory_order_relaxed);
    Cache* other = nullptr;
    if (!Words().cache.compare_exchange_strong(other, made, std::memory_order_acq_rel,
                                               std::memory_order_acquire)) {
      Free(made);
    }
    return Get(cache);
  }

  CUresult Close() const noexcept {
    Cache* cache = nullptr;
    const CUresult code = Get(&cache);
    if (code != CUDA_SUCCESS) return code;
    if (cache == nullptr || !Words().cache.compare_exchange_strong(cache, Closing())) {
      return CUDA_ERROR_ILLEGAL_STATE;
    }
    Free(cache);
    Words().cache.store(nullptr, std::memory_order_release);
    return CUDA_SUCCESS;
  }

 private:
  // While the values end, which may call the cache.
  static Cache* Closing() noexcept { return reinterpret_cast<Cache*>(alignof(Cache)); }
  static void Free(Cache* cache) noexcept {
    cache->~Cache();
    std::free(cache);
  }

  CacheWords& Words() const noexcept {
    auto* const words = const_cast<unsigned long long*>(given_->opaque);
    return *std::launder(reinterpret_cast<CacheWords*>(words));
  }

  const cuguest_per_context* given_;
};

using Held = PerContextTable::Held;
using PinStorage = StorageOf<Held, cuguest_per_context_pin>;

CUresult BeginPin(const PinStorage& storage, const Held& held) noexcept {
  if (held.value == nullptr) return CUDA_ERROR_NOT_FOUND;
  storage.Begin(held);
  return CUDA_SUCCESS;
}

// use(table, context), where both are there; what there is none of is not found.
template <typename Use>
CUresult WithTable(const cuguest_per_context* given, const cuguest_ref* ref, Use use) noexcept {
  if (!IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  Cache* cache = nullptr;
  const CUresult code = CacheStorage(given).Get(&cache);
  if (code != CUDA_SUCCESS) return code;
  return cache != nullptr ? use(cache->table, NamedBy(*ref).Ref()) : CUDA_ERROR_NOT_FOUND;
}

CUresult Forget(const cuguest_per_context* given, const cuguest_ref* ref, bool is_dead) noexcept {
  return WithTable(given, ref, [=](PerContextTable& table, const ContextRef& context) {
    return table.Forget(context, is_dead) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  });
}

CUresult Drop(const cuguest_per_context* given, std::size_t* count,
              std::size_t (PerContextTable::*drop)()) noexcept {
  Cache* cache = nullptr;
  const CUresult code = CacheStorage(given).Get(&cache);
  if (code != CUDA_SUCCESS) return code;
  const std::size_t dropped = cache != nullptr ? (cache->table.*drop)() : 0;
  if (count != nullptr) *count = dropped;
  return CUDA_SUCCESS;
}

CUresult MakeValue(Cache* cache, const ContextRef& context, const PinStorage& pin) noexcept {
  const InnerGuard guard(context, kHere);
  PerContextTable::Making making(&cache->table, context, guard.result());
  if (making.error().ok() && making.held().value == nullptr) {
    const TypeOfC& type = cache->type;
    std::memset(making.storage(), 0, type.size);
    const cuguest_ref ref = {sizeof(ref), context.get(), context.id()};
    const int code = type.make(&ref, making.storage(), type.user);
    if (code != 0) return static_cast<CUresult>(code);
    making.Publish();
  }
  return making.error().ok() ? BeginPin(pin, making.held()) : making.error().code;
}

}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

int cuguest_per_context_get(cuguest_per_context* cache, const cuguest_per_context_type* type,
                            const cuguest_ref* context, cuguest_per_context_pin* pin) {
  const c::PinStorage storage(pin);
  CUresult code = storage.CanBegin();
  if (code == CUDA_SUCCESS) code = c::TypeOfC::Check(type);
  if (code == CUDA_SUCCESS && !c::IsRef(context)) code = CUDA_ERROR_INVALID_VALUE;
  if (code != CUDA_SUCCESS) return code;
  const c::TypeOfC wanted(*type);
  c::Cache* opened = nullptr;
  code = c::CacheStorage(cache).GetOrOpen(wanted, &opened);
  if (code != CUDA_SUCCESS) return code;
  if (!(opened->type == wanted)) return CUDA_ERROR_INVALID_VALUE;
  const cuguest::ContextRef ref = c::NamedBy(*context).Ref();
  const c::Held held = opened->table.Find(ref);
  return held.value != nullptr ? c::BeginPin(storage, held) : c::MakeValue(opened, ref, storage);
}

int cuguest_per_context_find(cuguest_per_context* cache, const cuguest_ref* context,
                             cuguest_per_context_pin* pin) {
  const c::PinStorage storage(pin);
  const CUresult code = storage.CanBegin();
  if (code != CUDA_SUCCESS) return code;
  return c::WithTable(cache, context,
                      [&](c::PerContextTable& table, const cuguest::ContextRef& ref) {
                        return c::BeginPin(storage, table.Find(ref));
                      });
}

void* cuguest_per_context_value(const cuguest_per_context_pin* pin) {
  const c::StorageOf<const c::Held, const cuguest_per_context_pin> storage(pin);
  return storage.HasBegun() == CUDA_SUCCESS ? storage->value : nullptr;
}

int cuguest_per_context_unpin(cuguest_per_context_pin* pin) {
  return c::EndScope<c::Held>(pin, [](c::Held* held) {
    c::PerContextTable::Unpin(held->stripe);
    return CUDA_SUCCESS;
  });
}

void cuguest_per_context_pin_cleanup(cuguest_per_context_pin* pin) {
  static_cast<void>(cuguest_per_context_unpin(pin));
}

int cuguest_per_context_forget(cuguest_per_context* cache, const cuguest_ref* context) {
  return c::Forget(cache, context, /*is_dead=*/false);
}

int cuguest_per_context_forget_destroyed(cuguest_per_context* cache, const cuguest_ref* context) {
  return c::Forget(cache, context, /*is_dead=*/true);
}

int cuguest_per_context_forget_all(cuguest_per_context* cache, size_t* count) {
  return c::Drop(cache, count, &c::PerContextTable::ForgetAll);
}

int cuguest_per_context_drop_dead(cuguest_per_context* cache, size_t* count) {
  return c::Drop(cache, count, &c::PerContextTable::DropDead);
}

size_t cuguest_per_context_size(const cuguest_per_context* cache) {
  c::Cache* open = nullptr;
  static_cast<void>(c::CacheStorage(cache).Get(&open));
  return open != nullptr ? open->table.size() : 0;
}

int cuguest_per_context_close(cuguest_per_context* cache) { return c::CacheStorage(cache).Close(); }

void cuguest_per_context_cleanup(cuguest_per_context* cache) {
  static_cast<void>(c::CacheStorage(cache).Close());
}
