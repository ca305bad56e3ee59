// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The channel of an audited process: memory that the collector in the process maps and fills, and
// that the command maps and empties. What was written survives the process, however it ends.
//
// Note [Where a channel comes from]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The command makes the memory, a sealed memfd, so that no file-size limit of the process applies
// to it and nobody can truncate it under a reader. The process asks for it through a socket with an
// abstract name, which needs no folder, no descriptor that the process has inherited and may have
// closed, and no permission, and which is gone with the command: kChannelVariable has the name and,
// after a colon, a key that the process sends. The answer is the descriptor. The kernel tells the
// command which process asked, by the process id of the command's own namespace.
//
// Note [A record in the ring]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The memory is a ChannelHeader and then `slots` slots of one size, used in a circle. A record is
// one slot or several that follow each other; the tickets of slots count up for ever, and the slot
// of a ticket is the ticket modulo `slots`. A writer takes its tickets with one addition to `head`,
// fills its slots, and stores `sequence` = ticket + 1 in each, in the first one last: the record is
// then there. The reader stores in `tail` the first ticket that it has not read, and writers stay
// within `slots` of it; a writer that has waited kChannelPatience in vain counts its record in
// `lost`.
//
// A writer that died in mid-record leaves slots whose sequence is not their ticket's. Once the
// process is gone the reader passes over them, one by one, and over slots that continue a record
// whose first one is missing.
//
// What a record refers to by number (a name, an object, a chain) was defined by an earlier record
// of the same ring. Chains are numbered within their thread, by a small number that is defined anew
// when its place is needed, which bounds the memory of both sides.
//
// Thread-safe: the layout is; see the Note.

#ifndef CUGUEST_AUDIT_CHANNEL_H_
#define CUGUEST_AUDIT_CHANNEL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuguest::audit {

// Environment of an audited program.
inline constexpr char kChannelVariable[] = "CUGUEST_AUDIT_CHANNEL";  // where to ask for a channel
// Sources to try, in this order, with commas between: cudasim, cupti, sanitizer, which is also the
// order without it.
inline constexpr char kSourceVariable[] = "CUGUEST_AUDIT_SOURCE";
// Patterns of calls' names, with commas between: the first call of each function is an event.
inline constexpr char kWatchVariable[] = "CUGUEST_AUDIT_WATCH";
// If it is there, each call that fails is an event.
inline constexpr char kNoiseVariable[] = "CUGUEST_AUDIT_NOISE";
// Paths of libcupti.so and libsanitizer-public.so, where the usual ones are not to be used.
inline constexpr char kCuptiVariable[] = "CUGUEST_AUDIT_CUPTI";
inline constexpr char kSanitizerVariable[] = "CUGUEST_AUDIT_SANITIZER";

// For a program that collects its own events, a function of libcuguest-audit.so: begins with the
// channel of the descriptor `memory`, which the caller closes, or pauses or resumes. There is one
// channel. Not to be called by two threads at once.
inline constexpr char kCollectFunction[] = "CuguestAuditCollectInto";
using CollectFunction = int(int memory);
inline constexpr int kPauseCollecting = -1;
inline constexpr int kResumeCollecting = -2;
enum class Collecting : int {
  kStarted,     // the channel says whether a source of events could be had
  kForAnother,  // the library was injected, and collects for cuguest-audit
  kNoChannel,   // the memory is no channel, or cannot be mapped
};

inline constexpr char kChannelMemory[] = "cuguest-audit";           // the name of the memfd
inline constexpr std::uint64_t kChannelMagic = 0x3330746964756163;  // "caudit03"
inline constexpr std::uint32_t kChannelSlots = 1 << 14;             // unless asked otherwise: 2 MiB
inline constexpr std::uint64_t kChannelPatienceNs = 2'000'000'000;
inline constexpr std::size_t kMaxChannelAddress = 100;  // of kChannelVariable

struct ChannelHeader {
  std::atomic<std::uint64_t> magic;  // stored last: the rest of the header is then there
  std::uint32_t slots;               // a power of two; set by the reader
  std::int32_t parent;               // as the process sees it
  std::uint32_t forked;              // 1: a copy of a process that had started CUDA
  std::uint32_t reserved;
  std::uint64_t start_ns;  // CLOCK_MONOTONIC at which times of events begin
  char program[512];       // path of the executable, cut off if longer; ends with a zero
  alignas(64) std::atomic<std::uint64_t> head;
  alignas(64) std::atomic<std::uint64_t> tail;
  alignas(64) std::atomic<std::uint64_t> lost;  // records for which there was no room
  std::atomic<std::uint64_t> exit_ns;           // when exit() was called; 0: it was not
};

enum class RecordKind : std::uint8_t {
  kContinuation,  // of the record before
  kEvent,         // EventRecord
  kChain,         // ChainRecord, then its FrameRecords
  // TextRecord: the path; then, after zeros, the build id in hexadecimal, the soname, the length of
  // the package in decimal and the function, as Object has them
  kObject,
  kName,    // TextRecord: the name of a call
  kSource,  // TextRecord: the name of the source that gives this process's events
  kNote,    // TextRecord: a source that could not be had, what a source cannot see: for people
  kThread,  // ThreadRecord: before the thread's first event
  kLimit,  // TextRecord: a limit of the collector that was reached, and what is missing: for people
};

inline constexpr std::size_t kSlotBody = 112;
inline constexpr std::size_t kMaxSlotsOfRecord = 240;

struct alignas(64) ChannelSlot {
  std::atomic<std::uint64_t> sequence;
  RecordKind kind;
  std::uint8_t reserved;
  std::uint16_t slots;  // of the record; of its first slot only
  std::uint32_t size;   // of the record's body in bytes, likewise
  std::uint8_t body[kSlotBody];
};
static_assert(sizeof(ChannelSlot) == 128);

struct EventRecord {
  std::uint64_t time_ns;  // CLOCK_MONOTONIC
  std::uint64_t before;
  std::uint64_t after;
  std::uint64_t context;
  std::uint64_t value;
  std::uint64_t old_value;
  std::uint32_t thread;
  std::uint32_t name;
  std::int32_t result;
  std::int32_t device;
  std::int32_t setting;
  std::uint16_t chain;             // of the thread
  std::uint16_t chain_generation;  // as the ChainRecord has it; 0: no chain
  std::uint8_t kind;               // EventKind
  std::uint8_t primary;
  std::uint8_t runtime;  // Runtime
  std::uint8_t reserved[5];
};
static_assert(sizeof(EventRecord) <= kSlotBody);

struct ChainRecord {
  std::uint32_t thread;
  std::uint16_t chain;
  std::uint16_t generation;  // never 0
};

struct FrameRecord {
  std::uint64_t offset;
  std::uint64_t address;
  std::uint32_t object;
  std::uint32_t reserved;
};

struct TextRecord {
  std::uint32_t number;  // of the name or object; objects from 1
  std::uint32_t reserved;
  // then the text, to the end of the record
};

struct ThreadRecord {
  std::uint32_t thread;
  std::int32_t id;  // as the process sees it
  // then the name, to the end of the record
};

inline std::size_t ChannelBytes(std::uint32_t slots) {
  return sizeof(ChannelHeader) + slots * sizeof(ChannelSlot);
}

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_CHANNEL_H_
