// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "conformance/call.h"

#include <algorithm>
#include <cctype>

namespace conformance {

Param Number(std::initializer_list<long long> numbers) {
  return {Param::Way::kNumber, "", numbers};
}
Param Use(const char* kinds, int null_percent) {
  return {Param::Way::kUse, kinds, {}, null_percent};
}
Param UseStream() { return {Param::Way::kUse, "S", {-1, -2}, 15}; }
Param Make(const char* kind, int null_percent) {
  return {Param::Way::kMake, kind, {}, null_percent};
}
Param Out(const char* kinds, int null_percent) {
  return {Param::Way::kOut, kinds, {}, null_percent};
}
Param Hidden(int null_percent) { return {Param::Way::kOut, "", {}, null_percent, true}; }

std::uint64_t Frame::Raw(size_t i) const {
  const Value& value = values_[i];
  if (value.kind == Value::kNumber) return static_cast<std::uint64_t>(value.number);
  if (value.number < 0) return static_cast<std::uint64_t>(-value.number);  // a special stream
  const Object* object = world.Find(value);
  return object != nullptr ? object->handle : 0;
}

void Frame::SayOut(size_t i, const void* place, size_t size, bool is_made) {
  unsigned char untouched[64];
  std::memset(untouched, kUntouched, sizeof(untouched));
  const bool is_written = std::memcmp(place, untouched, std::min(size, sizeof(untouched))) != 0;
  if (!is_written) return SayText("-");
  if (params_[i].is_hidden || size > sizeof(std::uint64_t)) return SayText("+");
  std::uint64_t bits = 0;
  std::memcpy(&bits, place, size);
  if (params_[i].way == Param::Way::kMake) {
    if (bits == 0) return SayText("0");
    if (is_made) world.Add(values_[i], static_cast<std::uintptr_t>(bits));
    return is_made ? void() : SayText("-");  // a call that fails may leave anything
  }
  const char* kinds = params_[i].kinds;
  if (*kinds == '\0') {
    return SayNumber(size == 4 ? static_cast<int>(bits) : static_cast<long long>(bits));
  }
  if (std::islower(static_cast<unsigned char>(*kinds)) != 0) {
    return SayText(NameOfId(world, *kinds, bits));
  }
  if (bits == 0) return SayText("0");
  const Object* object = world.FindByHandle(kinds, static_cast<std::uintptr_t>(bits));
  SayText(object != nullptr ? ToText(object->name) : "?");
}

std::string NameOfId(World& world, char kind, unsigned long long id) {
  const auto handle = static_cast<std::uintptr_t>(id);
  const char kinds[] = {kind, '\0'};
  const Object* known = world.FindByHandle(kinds, handle);
  return ToText(known != nullptr ? known->name : world.Add(world.NextName(kind), handle).name);
}

Then Ends(size_t i) {
  return [=](Frame& frame) { frame.world.End(frame.value(i)); };
}

Value OwnerOf(const World& world, const Value& context) {
  const Object* green = world.Find(context);
  return green != nullptr && context.kind == 'G' ? Value{'P', 1} : context;
}

Value ContextOfStream(const World& world, const Value& stream) {
  const Object* created = world.Find(stream);
  return created != nullptr ? created->place : world.Top();
}

Value SeenCurrent(const World& world) {
  CUcontext context = nullptr;
  RAW(cuCtxGetCurrent)(&context);
  const Object* object = world.FindByHandle("CPG", reinterpret_cast<std::uintptr_t>(context));
  if (object != nullptr) return object->name;
  return {'C', context != nullptr ? -1 : 0};
}

Then OfCurrent(size_t i) {
  return [=](Frame& frame) {
    Object* object = frame.ObjectOf(i);
    if (object == nullptr) return;
    frame.world.SeeCurrent(SeenCurrent(frame.world));  // the call may have bound it
    object->owner = frame.world.OwnerNow();
    object->place = frame.world.Top();
  };
}

Then Allocated(size_t i, size_t bytes) {
  return [=](Frame& frame) {
    OfCurrent(i)(frame);
    if (Object* memory = frame.ObjectOf(i)) memory->size = static_cast<size_t>(frame.Number(bytes));
  };
}

Then KeptByCaptures(std::initializer_list<size_t> arguments) {
  const std::vector<size_t> kept = arguments;
  return [=](Frame& frame) {
    if (frame.world.captures == 0) return;
    for (const size_t i : kept) {
      if (Object* object = frame.ObjectOf(i)) object->is_kept = true;
    }
  };
}

Then Used(std::initializer_list<size_t> arguments, size_t stream) {
  const Then keep = KeptByCaptures(arguments);
  return [=](Frame& frame) {
    keep(frame);
    if (frame.world.captures == 0) RAW(cuStreamSynchronize)(frame.As<CUstream>(stream));
  };
}

Then Done(size_t bytes) {
  return [=](Frame& frame) {
    if (frame.Number(bytes) == 0) return;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    RAW(cuThreadExchangeStreamCaptureMode)(&mode);
    RAW(cuStreamSynchronize)(CU_STREAM_LEGACY);
    RAW(cuThreadExchangeStreamCaptureMode)(&mode);
  };
}

When Fits(std::initializer_list<size_t> objects, size_t bytes) {
  const std::vector<size_t> all = objects;
  return [=](const World& world, const Values& values) {
    return std::all_of(all.begin(), all.end(), [&](size_t i) {
      const Object* object = world.Find(values[i]);
      return object == nullptr || static_cast<size_t>(values[bytes].number) <= object->size;
    });
  };
}

When MayWait(Place place, size_t event) {
  return [=](const World& world, const Values& values) {
    const Object* shared = world.Find(values[event]);
    if (shared == nullptr || !shared->is_shared) return true;
    return shared->owner == OwnerOf(world, place(world, values));
  };
}

When IsExpensive() {
  return [](const World& world, const Values&) { return world.cost == Cost::kExpensive; };
}

When IsFree(size_t i) {
  return [=](const World& world, const Values& values) {
    const Object* object = world.Find(values[i]);
    return object == nullptr || !object->is_kept;
  };
}

Then CameFrom(size_t graph) {
  return [=](Frame& frame) {
    if (Object* made = frame.ObjectOf(0)) made->place = frame.value(graph);
  };
}

const std::vector<Room>& Rooms() {
  static const std::vector<Room> rooms = {
      ContextRoom(), PrimaryRoom(), StreamRoom(),  EventRoom(),  MemoryRoom(),
      ErrorRoom(),   RuntimeRoom(), CaptureRoom(), GraphRoom(),  PoolRoom(),
      GreenRoom(),   CodeRoom(),    NodeRoom(),    DeviceRoom(),
  };
  return rooms;
}

const Call* FindCall(const std::string& name) {
  for (const Room& room : Rooms()) {
    for (const Call& call : room.calls) {
      if (name == call.name) return &call;
    }
  }
  return nullptr;
}

}  // namespace conformance
