// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/driver_log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

#include "cuguest/driver.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "lib/core/concurrency.h"
#include "lib/core/driver_access.h"
#include "lib/core/failure.h"
#include "lib/objects/driver_log.h"
#include "lib/objects/object_driver.h"
#include "lib/status/driver_status.h"
#include "lib/status/driver_words.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

// Note [Whose call it was]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// The driver calls every subscriber for every call that fails in the process, on the thread of that
// call and before it returns. So while a DriverLog is open, cuguest calls the driver through a
// table whose entries say to the thread which function they call, call it, and say that it is
// over: a line that comes in between is of that call, unless somebody whom the driver
// calls back there fails a call there, which the last line of a call tells, by the function's
// name. A call that nobody has announced is the host's, and its lines are dropped. What was said
// stays until the thread's next call. A status is made of it right then, or an Error, which has no
// room for it: the Error's phrase is kept beside it, so that the Error's status is told it, and no
// other.

// Of the registration that is kept (NewMark()); nullptr: there is none. What was said is of one.
std::atomic<void*> g_mark{nullptr};

// Of a thread. Zero when it begins; has no destructor, and its address is taken before the driver
// calls back, so that nothing is allocated there.
struct ThreadWords {
  static constexpr unsigned kRoom = 440;

  const char* called;  // the function that cuguest is in; nullptr: none
  const char* doing;   // of the Error that was made
  void* mark;          // g_mark when it was said
  CUresult code;       // of the words; CUDA_SUCCESS: there are none
  CUresult returned;   // what the driver says that the call returns
  bool is_over;        // the last line of a call has come
  bool is_heard;       // and it was the one that cuguest is in
  unsigned length;     // of `reason`
  char function[48];   // as the driver calls it
  char reason[kRoom];
};
thread_local ThreadWords t_words;

ThreadWords* Here() noexcept { return AddressOnce(&t_words); }

void Forget(ThreadWords* words) noexcept {
  words->doing = nullptr;
  words->code = CUDA_SUCCESS;
  words->is_over = false;
  words->length = 0;
}

// What cuguest calls between a failure and its status: to restore what was current and the mode of
// captures, and for the text. If it succeeds, the words of the failure stay.
bool IsBeside(std::string_view function) noexcept {
  constexpr std::string_view kBeside[] = {"cuCtxGetApiVersion",
                                          "cuCtxGetCurrent",
                                          "cuCtxGetDevice",
                                          "cuCtxGetId",
                                          "cuCtxPopCurrent",
                                          "cuCtxPushCurrent",
                                          "cuDeviceGetAttribute",
                                          "cuMemGetAccess",
                                          "cuPointerGetAttribute",
                                          "cuPointerGetAttributes",
                                          "cuStreamGetCaptureInfo",
                                          "cuStreamIsCapturing",
                                          "cuThreadExchangeStreamCaptureMode"};
  return std::find(std::begin(kBeside), std::end(kBeside), function) != std::end(kBeside);
}

// What was called before, if the driver has called back and this is inside.
[[gnu::noinline]] const char* BeginCall(const char* function) noexcept {
  ThreadWords* const here = Here();
  if (!IsBeside(function)) Forget(here);
  here->is_heard = false;
  return std::exchange(here->called, function);
}

[[gnu::noinline]] CUresult EndCall(const char* outer, CUresult code) noexcept {
  ThreadWords* const here = Here();
  here->called = outer;
  if (code == CUDA_SUCCESS) return code;
  if (here->is_heard && here->returned == code && here->length > 0) {
    here->code = code;
    here->mark = g_mark.load(std::memory_order_relaxed);
  } else {
    Forget(here);
  }
  return code;
}

// Whether there are words of `code`. Those of a DriverLog that is closed are over.
bool HasWords(const ThreadWords& words, CUresult code) noexcept {
  return code != CUDA_SUCCESS && words.code == code &&
         words.mark == g_mark.load(std::memory_order_relaxed);
}

// What is printable of one line, behind the lines before it.
void Append(std::string_view line, ThreadWords* words) noexcept {
  const auto add = [&](char byte) {
    if (words->length < ThreadWords::kRoom) {
      words->reason[words->length++] = byte;
    } else {
      std::memcpy(words->reason + ThreadWords::kRoom - 3, "...", 3);
    }
  };
  if (words->length > 0) {
    add(';');
    add(' ');
  }
  for (const char byte : line) {
    const bool is_printable = byte >= ' ' && byte <= '~';
    const bool is_space = byte == '\n' || byte == '\r' || byte == '\t';
    add(is_printable ? byte : is_space ? ' ' : '?');
  }
}

// Without what stands before a line in a file, "[12:30:00.000][4711][CUDA][E] ", and behind it.
std::string_view Stripped(std::string_view line) noexcept {
  while (!line.empty() && line.front() == '[') {
    const std::size_t end = line.find(']');
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 1);
  }
  constexpr char kAround[] = " \t\r\n";
  line.remove_prefix(std::min(line.find_first_not_of(kAround), line.size()));
  // With the NUL, if it is counted.
  while (!line.empty() && (line.back() == '\0' || std::strchr(kAround, line.back()) != nullptr)) {
    line.remove_suffix(1);
  }
  return line;
}

// "cuMemAlloc" is, of "cuMemAlloc" and "cuMemAlloc_v2".
bool IsNamed(std::string_view said, std::string_view function) noexcept {
  return said.substr(0, function.size()) == function &&
         (said.size() == function.size() || said[function.size()] == '_');
}

constexpr std::string_view kReturning = "Returning ";
constexpr std::string_view kFrom = " from ";

// "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemFree_v2", the last line of a call.
void EndGroup(std::string_view line, ThreadWords* words) noexcept {
  const std::size_t from = line.rfind(kFrom);
  const std::string_view function =
      from != std::string_view::npos ? line.substr(from + kFrom.size()) : std::string_view();
  int code = 0;
  line.remove_prefix(kReturning.size());
  const bool is_number =
      std::from_chars(line.data(), line.data() + line.size(), code).ec == std::errc();
  if (!is_number || !IsNamed(function, words->called)) {
    words->length = 0;  // of a call inside this one
    return;
  }
  words->is_over = true;
  words->is_heard = true;
  words->returned = static_cast<CUresult>(code);
  const std::size_t fits = std::min(function.size(), sizeof(words->function) - 1);
  std::memcpy(words->function, function.data(), fits);
  words->function[fits] = '\0';
}

// Makes no call of the driver, allocates nothing, takes no lock.
void CUDAAPI Hear(void* mark, int /*level*/, char* message, std::size_t length) noexcept {
  if (mark != g_mark.load(std::memory_order_relaxed)) return;
  ThreadWords* const here = Here();
  if (here->called == nullptr || message == nullptr) return;
  if (here->is_over) Forget(here);
  const std::string_view line = Stripped({message, length});
  if (line.substr(0, kReturning.size()) == kReturning) return EndGroup(line, here);
  if (!line.empty()) Append(line, here);
}

std::string TextOf(const ThreadWords& words) {
  std::string text = words.function;
  text += ": ";
  text.append(words.reason, words.length);
  return text;
}

// For g_driver_words and g_note_failure.
std::string TellStatus(CUresult code, const char* doing) {
  ThreadWords* const here = Here();
  if (!HasWords(*here, code) || here->doing != doing) return "";
  std::string text = TextOf(*here);
  if (doing == nullptr) Forget(here);  // so that no later status of this code has it, too
  return text;
}

void NoteFailure(CUresult code, const char* doing) {
  ThreadWords* const here = Here();
  if (HasWords(*here, code) && here->doing == nullptr) here->doing = doing;
}

// The process's tables, and the one that is called through while a DriverLog is open, made of them
// once. An author may keep the address of the second as that of the first.
ObjectDriver g_called;
ObjectDriver g_heard;

template <auto member, typename Name>
struct Heard;
template <typename Table, typename... Parameters, CUresult (CUDAAPI* Table::*member)(Parameters...),
          typename Name>
struct Heard<member, Name> {
  static CUresult CUDAAPI Call(Parameters... parameters) {
    const char* const outer = BeginCall(Name::kText);
    return EndCall(outer, (g_called.*member)(parameters...));
  }
  static void Put() {
    if (g_called.*member != nullptr) g_heard.*member = &Call;
  }
};

#define CUGUEST_NAME_OF_ENTRY(Name, version, suffix, parameters) \
  struct Name {                                                  \
    static constexpr char kText[] = "cu" #Name;                  \
  };
namespace name_of {
CUGUEST_REQUIRED_ENTRIES(CUGUEST_NAME_OF_ENTRY)
CUGUEST_OPTIONAL_ENTRIES(CUGUEST_NAME_OF_ENTRY)
CUGUEST_REQUIRED_OBJECT_ENTRIES(CUGUEST_NAME_OF_ENTRY)
CUGUEST_OPTIONAL_OBJECT_ENTRIES(CUGUEST_NAME_OF_ENTRY)
}  // namespace name_of
#undef CUGUEST_NAME_OF_ENTRY

#define CUGUEST_PUT_ENTRY(Name, version, suffix, parameters) \
  Heard<&ObjectDriver::Name, name_of::Name>::Put();
void MakeHeardTable(const DriverTable& driver, const ObjectDriver* objects) {
  if (objects != nullptr) {
    g_called = *objects;
  } else {
    static_cast<DriverTable&>(g_called) = driver;
  }
  g_heard = g_called;
  CUGUEST_REQUIRED_ENTRIES(CUGUEST_PUT_ENTRY)
  CUGUEST_OPTIONAL_ENTRIES(CUGUEST_PUT_ENTRY)
  CUGUEST_REQUIRED_OBJECT_ENTRIES(CUGUEST_PUT_ENTRY)
  CUGUEST_OPTIONAL_OBJECT_ENTRIES(CUGUEST_PUT_ENTRY)
  Heard<&ObjectDriver::CtxGetDeviceOf, name_of::CtxGetDevice>::Put();
}
#undef CUGUEST_PUT_ENTRY

// cuLogsRegisterCallback and cuLogsUnregisterCallback, which the headers have since CUDA 12.9.
using Callback = decltype(&Hear);
using Register = CUresult(CUDAAPI*)(Callback, void* user, void** handle);
using Unregister = CUresult(CUDAAPI*)(void* handle);
constexpr char kRegister[] = "cuLogsRegisterCallback";
constexpr char kUnregister[] = "cuLogsUnregisterCallback";
constexpr char kOpen[] = "open the driver's log";

// Without destructors, as what is registered. No lock is held while the driver is called: of two
// that open the first one at a time both register, and one of the two takes its own back.
struct Registration {
  SharedMutex mutex;
  unsigned open = 0;
  void* handle = nullptr;
  Unregister unregister = nullptr;
  bool has_tables = false;

  // In a forked child: what was registered is the parent's.
  static void BeginAgain();
};
Registration g_registration;

void Registration::BeginAgain() {
  g_registration.open = 0;
  g_registration.handle = nullptr;
  new (&g_registration.mutex) SharedMutex;
}

std::lock_guard<SharedMutex> LockedRegistration() {
  WatchForks<&Registration::BeginAgain>();
  return std::lock_guard<SharedMutex>(g_registration.mutex);
}

// What only the registration that is kept has, so that each line is taken once.
void* NewMark() {
  static std::atomic<std::uintptr_t> s_last{0};
  return reinterpret_cast<void*>(s_last.fetch_add(1, std::memory_order_relaxed) + 1);
}

template <typename Function>
absl::StatusOr<Function> Find(const Driver& driver, const char* name) {
  // Asked for what is newer than itself, a driver fails, and logs it.
  if (driver.version < kHasLogs) return EntryNeedsNewer(driver, {name, "", 0, kHasLogs});
  return driver.Find<Function>(name, kHasLogs);
}

// The lock is held.
void Listen(const DriverTable& driver, const ObjectDriver* objects) {
  if (!g_registration.has_tables) MakeHeardTable(driver, objects);
  g_registration.has_tables = true;
  g_driver_words.store(&TellStatus, std::memory_order_release);
  g_note_failure.store(&NoteFailure, std::memory_order_relaxed);
  CallThrough(&g_heard);
  if (objects != nullptr) g_object_driver.store(&g_heard, std::memory_order_release);
}

void ListenNoMore() {
  CallThrough(&DecidedDriver()->table);
  g_object_driver.store(nullptr, std::memory_order_release);  // the next call has it again
  g_note_failure.store(nullptr, std::memory_order_relaxed);
  g_driver_words.store(nullptr, std::memory_order_release);
}

// One more of what is registered; false if nothing is.
bool BeginOne() {
  const auto lock = LockedRegistration();
  if (g_registration.handle != nullptr) ++g_registration.open;
  return g_registration.handle != nullptr;
}

// What a registration is, and what is called through because of it.
struct Registered {
  void* handle;
  void* mark;
  Unregister unregister;
  const DriverTable* driver;
  const ObjectDriver* objects;
};

// Makes it the one that is kept; false if one is.
bool Keep(const Registered& registered) {
  const auto lock = LockedRegistration();
  if (g_registration.handle != nullptr) return false;
  g_registration.handle = registered.handle;
  g_registration.unregister = registered.unregister;
  g_mark.store(registered.mark, std::memory_order_relaxed);
  g_registration.open = 1;
  Listen(*registered.driver, registered.objects);
  return true;
}

// One less; the handle of the last one, which is not kept any more, else nullptr.
void* EndOne() {
  const auto lock = LockedRegistration();
  if (--g_registration.open > 0) return nullptr;
  ListenNoMore();
  g_mark.store(nullptr, std::memory_order_relaxed);
  return std::exchange(g_registration.handle, nullptr);
}

}  // namespace

absl::Status OpenDriverLog() {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  if (IsForkedChild()) {
    const CUresult code = InitializeDriver(*driver);
    if (code != CUDA_SUCCESS) return InitStatus(code);
  }
  CUGUEST_ASSIGN_OR_RETURN(const auto add, Find<Register>(*driver, kRegister));
  CUGUEST_ASSIGN_OR_RETURN(const auto remove, Find<Unregister>(*driver, kUnregister));
  CUresult code = CUDA_SUCCESS;
  const ObjectDriver* const objects = TryObjectDriver(&code);
  // The tables are made once: not without what another call finds when there is memory.
  if (code == CUDA_ERROR_OUT_OF_MEMORY) return NoTableStatus(code);
  while (!BeginOne()) {
    Registered own = {nullptr, NewMark(), remove, driver, objects};
    CUGUEST_RETURN_IF_CUDA_ERROR(add(&Hear, own.mark, &own.handle), kOpen);
    if (Keep(own)) break;
    static_cast<void>(remove(own.handle));
  }
  return absl::OkStatus();
}

absl::Status CloseDriverLog() {
  const Unregister unregister = g_registration.unregister;
  void* const mark = g_mark.load(std::memory_order_relaxed);
  void* const handle = EndOne();
  if (handle == nullptr) return absl::OkStatus();
  const CUresult code = unregister(handle);
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_DEINITIALIZED) return absl::OkStatus();
  CUresult none = CUDA_SUCCESS;
  const Registered again = {handle, mark, unregister, &ResolvedDriver(), TryObjectDriver(&none)};
  // Somebody else may have opened one meanwhile; then the lines of this one are dropped.
  if (!Keep(again)) static_cast<void>(BeginOne());
  return ToStatus(code, "close the driver's log");
}

std::string DriverReason(CUresult code) {
  const ThreadWords& here = *Here();
  return HasWords(here, code) ? TextOf(here) : "";
}

CUGUEST_END_INTERNAL_NAMESPACE
CUGUEST_BEGIN_NAMESPACE

absl::StatusOr<DriverLog> DriverLog::Open() {
  CUGUEST_RETURN_IF_ERROR(internal::OpenDriverLog());
  return DriverLog(getpid());
}

DriverLog::DriverLog(DriverLog&& other) noexcept : process_(std::exchange(other.process_, 0)) {}

DriverLog& DriverLog::operator=(DriverLog&& other) noexcept {
  DriverLog taken(std::move(other));
  std::swap(process_, taken.process_);
  return *this;
}

DriverLog::~DriverLog() { static_cast<void>(Close()); }

absl::Status DriverLog::Close() {
  if (process_ == getpid()) CUGUEST_RETURN_IF_ERROR(internal::CloseDriverLog());
  process_ = 0;
  return absl::OkStatus();
}

std::string DriverLog::Reason(CUresult code) { return internal::DriverReason(code); }

CUGUEST_END_NAMESPACE
