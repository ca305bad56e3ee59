// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/objects/object_driver.h"

#include <cstring>
#include <iterator>

#include "lib/core/driver_access.h"
#include "lib/core/publish_once.h"
#include "lib/status/driver_status.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

constexpr NamedEntry kObjectRows[] = {CUGUEST_REQUIRED_OBJECT_ENTRIES(CUGUEST_NAMED_ENTRY)
                                          CUGUEST_OPTIONAL_OBJECT_ENTRIES(CUGUEST_NAMED_ENTRY)};
constexpr PackedEntries<std::size(kObjectRows), BytesOfNames(kObjectRows)> kPackedObjectEntries(
    kObjectRows);
static_assert(sizeof(ObjectDriver) == sizeof(Driver) + std::size(kObjectRows) * sizeof(void*));

constexpr DriverEntries kObjectEntries = {
    kPackedObjectEntries.names.Known(0), kPackedObjectEntries.versions, std::size(kObjectRows),
    CUGUEST_REQUIRED_OBJECT_ENTRIES(CUGUEST_ONE_ENTRY), sizeof(Driver)};

// What the first call came to; it is the same for good.
struct ObjectOutcome {
  ObjectDriver driver;
  DriverEntry missing;  // the first required entry that there is not
};
PublishOnce<ObjectOutcome> g_object_outcome;

ObjectOutcome ReadObjectDriver(const DriverTable& table) {
  ObjectOutcome outcome;
  static_cast<DriverTable&>(outcome.driver) = table;
  for (DriverEntry entry = kObjectEntries.First(); entry.name != nullptr;
       entry = kObjectEntries.Next(entry)) {
    const bool is_required = kObjectEntries.IsRequired(entry);
    // Asked for what is newer than itself, a driver fails, and logs it.
    const bool may_be_there = is_required || table.version == 0 || entry.version <= table.version;
    void* const function = may_be_there ? FindEntry(table, entry) : nullptr;
    if (is_required && function == nullptr && outcome.missing.name == nullptr) {
      outcome.missing = entry;
    }
    std::memcpy(reinterpret_cast<char*>(&outcome.driver) + entry.offset, &function,
                sizeof(function));
  }
  return outcome;
}

// nullptr without a driver, or without memory: `code` says so.
const ObjectOutcome* ObjectDriverOutcome(CUresult* code) noexcept {
  if (const ObjectOutcome* const kept = g_object_outcome.Get()) return kept;
  const DriverTable* const table = TryDriver(code);
  if (table == nullptr) return nullptr;
  const ObjectOutcome* const kept = g_object_outcome.Offer(ReadObjectDriver(*table));
  if (kept == nullptr) *code = CUDA_ERROR_OUT_OF_MEMORY;
  return kept;
}

}  // namespace

std::atomic<const ObjectDriver*> g_object_driver{nullptr};

const ObjectDriver* ResolveObjectDriver(CUresult* code) noexcept {
  const ObjectOutcome* const outcome = ObjectDriverOutcome(code);
  if (outcome == nullptr) return nullptr;
  if (outcome->missing.name != nullptr) {
    *code = kCallRequiresNewerDriver;
    return nullptr;
  }
  // Not in the place of what a DriverLog has put there.
  const ObjectDriver* none = nullptr;
  g_object_driver.compare_exchange_strong(none, &outcome->driver, std::memory_order_release,
                                          std::memory_order_relaxed);
  return &outcome->driver;
}

CUGUEST_END_INTERNAL_NAMESPACE
CUGUEST_BEGIN_NAMESPACE

absl::StatusOr<const ObjectDriver*> ObjectDriver::Get() {
  CUresult code = CUDA_SUCCESS;
  if (const ObjectDriver* const driver = internal::TryObjectDriver(&code)) return driver;
  const absl::StatusOr<const Driver*> heart = Driver::Get();
  if (!heart.ok()) return heart.status();
  // With the driver known to be there.
  if (const ObjectDriver* const driver = internal::TryObjectDriver(&code)) return driver;
  const internal::ObjectOutcome* const outcome = internal::ObjectDriverOutcome(&code);
  return outcome != nullptr ? internal::MissingEntryStatus(**heart, outcome->missing)
                            : internal::NoTableStatus(code);
}

absl::StatusOr<const ObjectDriver*> ObjectDriver::GetInitialized() {
  const absl::StatusOr<const Driver*> heart = Driver::GetInitialized();
  if (!heart.ok()) return heart.status();
  return Get();
}

absl::Status ObjectDriver::Load(const Driver& driver, ObjectDriver* objects) {
  const internal::ObjectOutcome outcome = internal::ReadObjectDriver(driver);
  if (outcome.missing.name != nullptr) {
    return internal::MissingEntryStatus(driver, outcome.missing);
  }
  *objects = outcome.driver;
  return absl::OkStatus();
}

absl::Status ObjectDriver::MissingObjectEntry(std::size_t offset) const {
  return internal::EntryNeedsNewer(*this, internal::kObjectEntries.At(offset));
}

CUGUEST_END_NAMESPACE
