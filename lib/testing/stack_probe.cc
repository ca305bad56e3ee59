// SPDX-License-Identifier: Apache-2.0

#include "cuguest/testing/stack_probe.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "cuguest/driver.h"
#include "lib/context/thread_stack.h"

CUGUEST_BEGIN_NAMESPACE
namespace testing {
namespace {

std::vector<StackProbe::Primary> Primaries(const Driver& driver) {
  std::vector<StackProbe::Primary> primaries;
  int count = 0;
  if (driver.DeviceGetCount(&count) != CUDA_SUCCESS) return primaries;
  for (int device = 0; device < count; ++device) {
    unsigned flags = 0;
    int active = 0;
    static_cast<void>(driver.DevicePrimaryCtxGetState(device, &flags, &active));
    primaries.push_back({active != 0, flags});
  }
  return primaries;
}

// Entries are pushed back by the driver table itself: each was alive a moment ago, on
// this thread.
bool WalkStack(const Driver& driver, std::vector<StackProbe::Entry>* entries) {
  const internal::ThreadStack stack(driver);
  bool cut = false;
  CUcontext current = nullptr;
  while (stack.Current(&current) == CUDA_SUCCESS && current != nullptr) {
    cut = stack.CurrentIsDead();
    if (cut) break;
    entries->push_back({current, stack.IdOf(current)});
    CUcontext popped = nullptr;
    if (stack.Pop(&popped) != CUDA_SUCCESS) break;
  }
  std::reverse(entries->begin(), entries->end());
  for (const StackProbe::Entry& entry : *entries) {
    if (driver.CtxPushCurrent(entry.context) == CUDA_SUCCESS) continue;
    std::fprintf(stderr, "cuguest: the stack probe could not put context %p back\n",
                 static_cast<void*>(entry.context));
    std::abort();
  }
  return cut;
}

void Describe(std::ostream& out, const std::vector<StackProbe::Entry>& stack) {
  if (stack.empty()) out << "(empty)";
  for (std::size_t i = 0; i < stack.size(); ++i) {
    out << (i == 0 ? "" : " ") << stack[i].context << "#" << stack[i].id;
  }
}

const char* Activity(const StackProbe::Primary& primary) {
  return primary.active ? "active" : "inactive";
}

}  // namespace

StackProbe StackProbe::Take() {
  StackProbe probe;
  const absl::StatusOr<const Driver*> driver = Driver::Get();
  if (!driver.ok()) return probe;
  probe.cut_ = WalkStack(**driver, &probe.stack_);
  probe.primaries_ = Primaries(**driver);
  if (!probe.stack_.empty()) static_cast<void>((*driver)->CtxGetFlags(&probe.flags_));
  return probe;
}

std::string StackProbe::Difference(const StackProbe& later) const {
  std::ostringstream out;
  if (!(stack_ == later.stack_) || cut_ != later.cut_) {
    out << "the stack of contexts (bottom first, handle#id)\n  was ";
    Describe(out, stack_);
    out << (cut_ ? " on a destroyed context" : "") << "\n  is  ";
    Describe(out, later.stack_);
    out << (later.cut_ ? " on a destroyed context" : "") << "\n";
  }
  if (current() == later.current() && flags_ != later.flags_) {
    out << "the flags of the current context were " << flags_ << " and are " << later.flags_
        << "\n";
  }
  constexpr Primary kUnknown{false, 0};
  for (std::size_t i = 0; i < std::max(primaries_.size(), later.primaries_.size()); ++i) {
    const Primary before = i < primaries_.size() ? primaries_[i] : kUnknown;
    const Primary after = i < later.primaries_.size() ? later.primaries_[i] : kUnknown;
    if (before == after) continue;
    out << "the primary context of device " << i << " was " << Activity(before) << " (flags "
        << before.flags << ") and is " << Activity(after) << " (flags " << after.flags << ")\n";
  }
  return out.str();
}

std::string StackProbe::Draw(const Name& name) const {
  std::string line = cut_ ? "... [dead]" : "";
  for (const Entry& entry : stack_) {
    line += (line.empty() ? "[" : " [") + name(entry.context) + "]";
  }
  return line.empty() ? "(empty)" : line + "<";
}

UndisturbedScope::UndisturbedScope(Fail fail, const char* file, int line)
    : fail_(std::move(fail)), file_(file), line_(line), before_(StackProbe::Take()) {}

UndisturbedScope::~UndisturbedScope() {
  const std::string difference = before_.Difference(StackProbe::Take());
  if (difference.empty()) return;
  std::ostringstream message;
  message << file_ << ":" << line_ << ": the scope disturbed its caller's CUDA state:\n"
          << difference;
  if (fail_ != nullptr) {
    fail_(message.str());
    return;
  }
  std::fputs(message.str().c_str(), stderr);
  std::abort();
}

}  // namespace testing
CUGUEST_END_NAMESPACE
