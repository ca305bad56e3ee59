// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/call_objects.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "audit/collect/argument.h"
#include "audit/collect/object_rule.h"

namespace cuguest::audit {
namespace {

// The kernel reads the set of signals before it refuses what is to be done with it.
bool IsUnreadable(std::uint64_t address) {
  constexpr int kNothingToDo = ~0;
  constexpr std::size_t kSet = 8;
  const int error = errno;
  const long code = syscall(SYS_rt_sigprocmask, kNothingToDo, address / kSet * kSet, nullptr, kSet);
  const bool is_unreadable = code < 0 && errno == EFAULT;
  errno = error;
  return is_unreadable;
}

// The stream of a CUlaunchConfig or a cudaLaunchConfig_t.
std::uint64_t StreamOfLaunch(const void* at) {
  constexpr std::size_t kStream = 32;
  const auto* config = ReadArgument<const char*>(at);
  return config != nullptr ? ReadArgument<std::uint64_t>(config + kStream) : 0;
}

// Whether the driver may not return from a call that is given a dead object of that kind. Of others
// it says that they are none.
bool MayAbort(ObjectKind kind) {
  return kind == ObjectKind::kStream || kind == ObjectKind::kEvent || kind == ObjectKind::kModule ||
         kind == ObjectKind::kArray;
}

// Whether the argument is a dead object. `is_certain`: before the call says so.
bool IsDead(char letter, const void* at, const OwnedObjects& owned, OwnedObject* object,
            bool* is_certain) {
  if (letter == 'K') {
    *is_certain = true;
    return owned.FindDead(ObjectKind::kStream, StreamOfLaunch(at), object);
  }
  if (letter == '3' || letter == ',' || IsMadeAt(letter)) return false;
  const auto word = ReadArgument<std::uint64_t>(at);
  if (letter != 'P') {
    const ObjectKind kind = KindOfLetter(letter);
    *is_certain = MayAbort(kind);
    return kind != ObjectKind::kNone && owned.FindDead(kind, word, object);
  }
  *is_certain = owned.FindDead(ObjectKind::kHostMemory, word, object) && IsUnreadable(word);
  return *is_certain || owned.FindDead(ObjectKind::kMemory, word, object);
}

// The context that owns what a call has made at an argument of that letter; 0: it is not known.
std::uint64_t OwnerOf(char letter, std::uint64_t context, std::uint64_t module,
                      const ContextTable& contexts, OwnedObjects* owned) {
  if (!HasKnownOwner(letter)) return 0;
  if (letter == 's') return context;
  OwnedObject of_function;
  if (letter == 'f') {
    return owned->FindLiving(ObjectKind::kModule, module, &of_function) ? of_function.context : 0;
  }
  return contexts.OwnerOf(context);
}

}  // namespace

DeadArguments FindDeadArguments(const ReportedCall& call, const OwnedObjects& owned) {
  DeadArguments dead;
  ForEachArgument(call.info->objects->arguments, call, SizeOfObjectArgument,
                  [&](char letter, const void* at) {
                    OwnedObject object;
                    bool is_certain = false;
                    dead.makes = dead.makes || IsMadeAt(letter);
                    if (!IsDead(letter, at, owned, &object, &is_certain)) return;
                    OwnedObject& first = is_certain ? dead.certain : dead.suspect;
                    if (first.kind == ObjectKind::kNone) first = object;
                  });
  return dead;
}

bool MeansArguments(int result) {
  return result == 1 || result == 16 || result == 17 || result == 400 || result == 709;
}

OwnedObject TakeObjects(const ReportedCall& call, const ContextTable& contexts,
                        OwnedObjects* owned) {
  const ObjectRule& rule = *call.info->objects;
  OwnedObject object;
  object.size = 1;
  std::uint64_t context = call.context;
  char made_at = '\0';
  bool is_first = true;
  ForEachArgument(rule.arguments, call, SizeOfObjectArgument, [&](char letter, const void* at) {
    const auto word = ReadArgument<std::uint64_t>(at);
    if (rule.frees && is_first) owned->Free(KindOfLetter(letter), word, call.context);
    if (letter == 'n') object.size *= word;
    if (letter == 'C') context = contexts.IdOf(ReadArgument<const void*>(at));
    if (letter == 'M') object.parent = word;
    if (IsMadeAt(letter) && word != 0) {
      made_at = letter;
      object.begin = ReadArgument<std::uint64_t>(ReadArgument<const void*>(at));
    }
    is_first = false;
  });
  if (made_at == '\0' || object.begin == 0) return {};
  object.kind = KindOfLetter(made_at);
  object.size = std::max<std::uint64_t>(object.size, 1);
  object.context = OwnerOf(made_at, context, object.parent, contexts, owned);
  return object;
}

}  // namespace cuguest::audit
