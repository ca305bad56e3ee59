// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "conformance/world.h"

#include <algorithm>
#include <cstring>

namespace conformance {

bool IsContext(const Value& name) {
  return (name.kind == 'C' || name.kind == 'P' || name.kind == 'G') && name.number != 0;
}

Object& World::Add(const Value& name, std::uintptr_t handle) {
  next_[name.kind] = std::max(next_[name.kind], name.number);
  Object object;
  object.name = name;
  object.handle = handle;
  objects_[name.kind].push_back(object);
  return objects_[name.kind].back();
}

const Object* World::Find(const Value& name) const {
  const auto all = objects_.find(name.kind);
  if (all == objects_.end()) return nullptr;
  for (const Object& object : all->second) {
    if (object.name == name) return &object;
  }
  return nullptr;
}

Object* World::Find(const Value& name) {
  return const_cast<Object*>(static_cast<const World*>(this)->Find(name));
}

const Object* World::FindByHandle(const char* kinds, std::uintptr_t handle) const {
  for (const char* kind = kinds; *kind != '\0'; ++kind) {
    const auto all = objects_.find(*kind);
    if (all == objects_.end()) continue;
    for (const Object& object : all->second) {
      if (object.handle == handle && IsUsable(object.name)) return &object;
    }
  }
  return nullptr;
}

std::vector<Value> World::Usable(const char* kinds) const {
  std::vector<Value> usable;
  for (const char* kind = kinds; *kind != '\0'; ++kind) {
    const auto all = objects_.find(*kind);
    if (all == objects_.end()) continue;
    for (const Object& object : all->second) {
      if (IsUsable(object.name)) usable.push_back(object.name);
    }
  }
  return usable;
}

std::vector<Object*> World::All(char kind) {
  std::vector<Object*> all;
  for (Object& object : objects_[kind]) {
    if (object.is_alive) all.push_back(&object);
  }
  return all;
}

bool World::IsUsable(const Value& name) const {
  if (name.kind == Value::kNumber || name.number <= 0) return true;
  const Object* object = Find(name);
  if (object == nullptr) return false;
  // The handle of a primary context is good for ever.
  return object->is_alive || name.kind == 'P' || (IsContext(name) && IsOnAStack(name));
}

bool World::IsOnAStack(const Value& context) const {
  return std::any_of(std::begin(stacks), std::end(stacks), [&](const std::vector<Value>& stack) {
    return std::find(stack.begin(), stack.end(), context) != stack.end();
  });
}

Value World::Top() const { return stacks[thread].empty() ? Value{'C', 0} : stacks[thread].back(); }

bool World::IsAlive(const Value& context) const {
  const Object* object = Find(context);
  return object != nullptr && object->is_alive;
}

Value World::OwnerNow() const {
  const Value top = Top();
  return top.kind == 'G' ? Value{'P', 1} : top;
}

void World::Pop() {
  if (!stacks[thread].empty()) stacks[thread].pop_back();
}

void World::SeeCurrent(const Value& context) {
  if (context == Top() || (context.number == 0 && Top().number == 0)) return;
  Pop();
  if (context.number != 0) Push(context);
}

void World::End(const Value& name) {
  Object* object = Find(name);
  if (object != nullptr) object->is_alive = false;
}

void World::EndContext(const Value& context) {
  End(context);
  for (auto& all : objects_) {
    for (Object& object : all.second) {
      const bool is_graph = std::strchr("RNX", object.name.kind) != nullptr;
      if (is_graph || object.owner == context || object.place == context) object.is_alive = false;
    }
  }
}

std::string World::State() const {
  const Value top = Top();
  std::string state = top.number == 0 ? "none" : std::string(1, top.kind);
  if (top.number != 0 && !IsAlive(top)) state += " ended";
  if (captures > 0) state += " capturing";
  return state;
}

}  // namespace conformance
