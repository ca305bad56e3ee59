#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a source wrong on purpose, so that a test can show that it would notice.

usage: mutate.py NAME SOURCE OUTPUT

A mutation replaces text that must occur exactly once in the source: where the source has changed,
the build fails until the mutation has followed.
"""

import pathlib
import sys

MUTATIONS = {
    # The root is left first, and the slot is closed later, when it may be another context's.
    "closes_late": [
        ("is_last && !HasNothingToEnd(*slot);", "is_last && !HasNothingToEnd(*slot) && false;"),
    ],
    # What is being destroyed is asked about.
    "asks_what_is_closing": [
        ("  return is_closing ? Outcome::kClosing : Outcome::kUnknown;\n",
         "  static_cast<void>(is_closing);\n  return Outcome::kUnknown;\n"),
    ],
    # The maker retires the slot that somebody holds to what it has made.
    "makes_apart": [
        ("id < context.id() || (makes && id == 0)", "id < context.id() || makes"),
    ],
    # The maker joins what somebody has opened, and nobody will destroy it.
    "makes_for_nobody": [
        ("      if (makes) Own(slot, device);\n", "      if (makes && id == 0) Own(slot, device);\n"),
    ],
    # The last holder does not look again whether the maker has come and gone.
    "leaves_it_idle": [
        ("  return !HasNothingToEnd(*slot) &&\n         slot->root.compare_exchange_strong(idle, 0,",
         "  return idle == 0 && !HasNothingToEnd(*slot) &&\n         slot->root.compare_exchange_strong(idle, 0,"),
    ],
    # What could not be destroyed stays closed, and is leaked.
    "loses_what_is_held": [
        ("  if (IsStillHeld(code)) {\n", "  if (false) {\n"),
    ],
    # What the index has need not be compared.
    "believes_the_index": [
        ("    if (slot != nullptr && is_found(slot)) return slot;\n",
         "    if (slot != nullptr && is_wanted(slot)) return slot;\n"),
    ],
    # The slot of a context that is gone can be joined beside the one of the next context at its handle.
    "retires_nothing": [
        ("      slot->is_retired.store(1, std::memory_order_relaxed);\n", ""),
    ],
    # The slot of what is alive is retired for one that is gone.
    "retires_the_later": [
        ("    if (id > context.id()) {\n      outcome = Outcome::kOver;\n    } else if (id < context.id() ||",
         "    if (id != context.id() ||"),
    ],
    # A retired slot ends nothing, and so keeps a reference of the driver's count.
    "keeps_the_primary": [
        ("  const CUresult code = End(*slot);\n",
         "  const CUresult code = slot->is_retired.load() != 0 ? CUDA_SUCCESS : End(*slot);\n"),
    ],
    # The root can be low while its stripes are gathered.
    "gathers_without_bias": [
        ("gathers ? now + Slot::kBias", "gathers ? now"),
        ("sum - Slot::kBias - Slot::kStriped", "sum - Slot::kStriped"),
    ],
    # The holder of the root's last reference adds the bias without looking at the root again.
    "gathers_twice": [
        ("    if (!slot->root.compare_exchange_weak(now, next, std::memory_order_acq_rel)) continue;\n",
         """    if (gathers) {
      slot->root.fetch_add(Slot::kBias, std::memory_order_acq_rel);
    } else if (!slot->root.compare_exchange_weak(now, next, std::memory_order_acq_rel)) {
      continue;
    }
"""),
    ],
    # The slot is free before what it counted is ended.
    "frees_before_it_ends": [
        ("  const CUresult code = End(*slot);\n",
         "  slot->context.store(0, std::memory_order_release);\n"
         "  const CUresult code = End(*slot);\n"),
    ],
    # A slot that is gathered at this moment counts 2^48.
    "counts_the_bias": [
        ("  if (sum >= Slot::kBias / 2) sum -= Slot::kBias;\n", ""),
    ],
    # What a holder did need not have happened before the last one ends the context.
    "leaves_relaxed": [
        ("next, std::memory_order_acq_rel)) continue;", "next, std::memory_order_relaxed)) continue;"),
    ],
    # per_context_table.cc: a child waits for a lock that a thread of its parent has.
    "locks_in_a_child": [
        ("std::memory_order_seq_cst) == nullptr || IsOfParent()) return {};",
         "std::memory_order_seq_cst) == nullptr) return {};"),
    ],
    # Who was forked while it made a value goes on as if it were the parent.
    "publishes_in_a_child": [
        ("  table_->GiveUp(entry->value);\n  error_ = RefusalInChild(entry->context);",
         "  held_ = {entry->value, count.stripe};"),
    ],
    # c_per_context.cc: two threads have a table each.
    "opens_twice": [
        ("    if (!Words().cache.compare_exchange_strong(other, made, std::memory_order_acq_rel,\n"
         "                                               std::memory_order_acquire)) {\n"
         "      Free(made);\n    }\n    return Get(cache);\n",
         "    static_cast<void>(other);\n    Words().cache.store(made);\n    *cache = made;\n"
         "    return CUDA_SUCCESS;\n"),
    ],
    # Who sees the table may take it for that of a copy.
    "opens_unmarked": [
        ("    Words().mark.store(MarkOf(given_), std::memory_order_relaxed);\n    Cache* other", "    Cache* other"),
        ("    return Get(cache);\n  }\n\n  CUresult Close",
         "    Words().mark.store(MarkOf(given_), std::memory_order_relaxed);\n    return Get(cache);\n  }\n\n  CUresult Close"),
    ],
    # The first entry may be seen late, and who sees none waits for nobody.
    "sees_the_first_entry_late": [
        ("head_.load(std::memory_order_seq_cst) == nullptr", "Head() == nullptr"),
    ],
    # per_context.cc: a pin is counted after the state was seen, when the value may be ending.
    "pins_late": [
        ("    count.Up();\n    fence.Light();\n"
         "    if (CUGUEST_INTERNAL_LIKELY(Is(State::kReady) && Names(wanted))) "
         "return {value, count.stripe};\n"
         "    count.Down();\n",
         "    if (Is(State::kReady) && Names(wanted)) {\n"
         "      count.Up();\n      return {value, count.stripe};\n    }\n"),
    ],
    # The pin and the look at the state may be seen in the other order.
    "pins_without_an_order": [
        ("    fence.Light();\n", ""),
    ],
    # Who closes does not see the pins that were counted before.
    "closes_without_an_order": [
        ("    knows_pins = fence.Heavy();\n", "    knows_pins = true;\n"),
    ],
    # A pin that another thread releases is taken from the owner's count, which that one writes.
    "releases_anywhere": [
        ("  Count{stripe, stripe->IsOwnedBy(thread.id)}.Down();\n",
         "  static_cast<void>(thread);\n  Count{stripe, true}.Down();\n"),
    ],
    # A stripe is taken from an owner that lives: both write its count.
    "takes_from_the_living": [
        ("    if (process != Process::Number() || !HasEnded(static_cast<int>(owner & 0xFFFFFFFFU))) {\n",
         "    if (false) {\n"),
    ],
    "forgets_without_waiting": [
        ("  if (lock) static_cast<void>(WaitWhile({EntryState::kEnding, context}, lock));\n", ""),
    ],
    # A maker that waits is not woken.
    "gives_back_in_silence": [
        ("  Head()->changes->changed.notify_all();\n", ""),
    ],
    # publish_once.h: the value may be seen before what is in it.
    "publishes_relaxed": [
        ("copy, std::memory_order_release,", "copy, std::memory_order_relaxed,"),
    ],
    # Two threads write the value to one place.
    "takes_the_place_twice": [
        ("taken_.fetch_add(1, std::memory_order_relaxed);",
         "taken_.load();\n    taken_.store(taken + 1);"),
    ],
    # The second of two threads that offer at one moment uses the heap, and what wins there is lost.
    "has_one_place": [
        ("kPlaces = 4;", "kPlaces = 1;"),
    ],
    # The later value replaces the one that others have.
    "publishes_twice": [
        ("    if (const T* const kept = Get()) return kept;\n", ""),
        ("    if (kept_.compare_exchange_strong(kept, copy, std::memory_order_release,\n"
         "                                      std::memory_order_acquire)) {\n",
         "    kept_.store(copy);\n    if (kept == nullptr) {\n"),
    ],
    # handle_pool.cc: two threads take one handle.
    "lends_twice": [
        ("         slot->state.compare_exchange_strong(idle, State::kLent, std::memory_order_acquire,\n"
         "                                             std::memory_order_relaxed);\n",
         "         (slot->state.store(State::kLent), true);\n"),
    ],
    # The next user need not see what the last one did to the handle.
    "lends_relaxed": [
        ("(idle, State::kLent, std::memory_order_acquire,",
         "(idle, State::kLent, std::memory_order_relaxed,"),
    ],
    "loses_a_handle": [
        ("  while (!head_.compare_exchange_weak(slot->next, slot.get(), std::memory_order_release,\n"
         "                                      std::memory_order_relaxed)) {\n"
         "  }\n",
         "  head_.store(slot.get());\n"),
    ],
    # incident_listener.cc: the destructor returns while another thread is in the callback.
    "removes_without_waiting": [
        ("    while (IsCalled(listener)) called_changed.wait_a_while(mutex);\n", ""),
    ],
    # It returns when any call has ended.
    "waits_once": [
        ("while (IsCalled(listener)) called_changed", "if (IsCalled(listener)) called_changed"),
    ],
    # It waits for the call that it is made from.
    "ends_itself_by_waiting": [
        ("        walk->called = nullptr;\n", ""),
    ],
    # A call that goes on is treated as one of the listener that began at the same address.
    "remembers_an_address": [
        ("        walk->called = nullptr;\n", ""),
        ("{ return walk.called == listener && walk.GoesOn(); }",
         "{ return walk.called == listener && walk.thread != internal::ThisThreadId(); }"),
    ],
    # Who finds that its callback has removed a listener does not wait for the callback.
    "forgets_what_it_ended": [
        ("        walk->ended = listener;\n", ""),
    ],
    # It waits for the call that it is made from, and that one for it.
    "awaits_itself": [
        ("    if (AnyWalk([=](const Walk& walk) { return walk.thread == here && is_in(walk); })) return;\n", ""),
    ],
    # A walk comes to a listener that is gone.
    "keeps_its_place": [
        ("      if (walk->next == listener) walk->next = listener->next_;\n", ""),
    ],
    # Who waits for a call is not woken when it ends.
    "walks_on_in_silence": [
        ("    called_changed.notify_all();\n", ""),
    ],
    # stream_use.cc: the end of a stream is seen when there is no event yet.
    "ends_before_its_event": [
        ("  const unsigned over = UsedStream::kIsOver | (RecordLast(used) ? UsedStream::kHasLast : 0);\n",
         "  constexpr unsigned over = UsedStream::kIsOver | UsedStream::kHasLast;\n"),
        ("  if (calls == 0) {\n", "  static_cast<void>(RecordLast(used));\n  if (calls == 0) {\n"),
    ],
    # What the end has done before need not be seen.
    "ends_relaxed": [
        ("fetch_add(over, std::memory_order_acq_rel)", "fetch_add(over, std::memory_order_relaxed)"),
    ],
    # The stream is destroyed while somebody is in a call with it.
    "destroys_in_a_call": [
        ("  if (calls == 0) {\n", "  if (calls < UsedStream::kCalls) {\n"),
        ("  if (was_last && ", "  if (false && was_last && "),
    ],
    # The end leaves the stream to a thread in a call, which does not know of that.
    "hands_over_to_nobody": [
        ("  if (was_last && ", "  if (false && was_last && "),
    ],
    # The stream ends between the look at it and the call.
    "looks_and_comes_in": [
        ("    if (used->state.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) {\n"
         "      held_ = used;\n      return;\n    }\n",
         "    used->state.fetch_add(1);\n    held_ = used;\n    return;\n"),
    ],
    # What was called with the stream need not have happened before it is destroyed.
    "goes_relaxed": [
        ("fetch_sub(1, std::memory_order_acq_rel)", "fetch_sub(1, std::memory_order_relaxed)"),
    ],
    # A stream that the driver refused to destroy is over, and more work comes.
    "stays_over": [
        ("    if (code != CUDA_SUCCESS) used->state.fetch_sub(over, std::memory_order_release);\n", ""),
    ],
    # It is there again, and somebody waits for the event of its end.
    "takes_the_event_back": [
        ("    if (code != CUDA_SUCCESS) used->state.fetch_sub(over, std::memory_order_release);\n",
         "    if (code != CUDA_SUCCESS) {\n      used->state.fetch_sub(over);\n"
         "      static_cast<void>(ResolvedObjectDriver().EventDestroy(used->last.exchange(nullptr)));\n    }\n"),
    ],
    # The next end of a stream that was refused one does not record the event anew.
    "forgets_the_last_event": [
        ("  if (event == nullptr) {\n", "  if (event != nullptr) return true;\n  if (event == nullptr) {\n"),
    ],
    # this_thread.cc: two threads have one number.
    "numbers_twice": [
        ("number = g_threads.fetch_add(1, std::memory_order_relaxed) + 1;",
         "{ number = g_threads.load() + 1; g_threads.store(number); }"),
    ],
    # A thread is known by what the next one in its place has again.
    "knows_an_address": [
        ("number = g_threads.fetch_add(1, std::memory_order_relaxed) + 1;",
         "number = reinterpret_cast<unsigned long long>(&number);"),
    ],
    # Two threads count from the same serial.
    "counts_serials_for_itself": [
        ("  return g_serials.fetch_add(ThisThread::kSerialsAtOnce, std::memory_order_relaxed);\n",
         "  const unsigned long long serial = g_serials.load();\n"
         "  g_serials.store(serial + ThisThread::kSerialsAtOnce);\n  return serial;\n"),
    ],
    # Two threads write into one letter.
    "takes_a_letter_twice": [
        ("    if (!letter->serial.compare_exchange_strong(serial, Letter::kTaken,\n"
         "                                                std::memory_order_acq_rel)) {\n"
         "      continue;\n    }\n",
         "    letter->serial.store(Letter::kTaken);\n"),
    ],
    # Of two letters that are added at the same time one is not on the list.
    "loses_a_letter": [
        ("  while (!g_letters.compare_exchange_weak(letter->next, letter, std::memory_order_acq_rel,\n"
         "                                          std::memory_order_relaxed)) {\n  }\n",
         "  g_letters.store(letter);\n"),
    ],
    # Whose letter it is may not be seen yet when its serial is.
    "tells_before_it_is_written": [
        ("  letter->thread.store(thread, std::memory_order_relaxed);\n"
         "  letter->serial.store(serial, std::memory_order_release);\n",
         "  letter->serial.store(serial, std::memory_order_release);\n"
         "  letter->thread.store(thread, std::memory_order_relaxed);\n"),
    ],
    # A thread takes away what another one is to read.
    "reads_any_letter": [
        ("    if (letter->thread.load(std::memory_order_relaxed) != here) continue;\n", ""),
    ],
    # scope.cc: what is current after the pop of a guard that pushed does not matter.
    "looks_no_more": [
        ("  code = nesting::CloseDisturbed(",
         "  if (popped == context_ && records::At(slot_).kind == Kind::kPushed) records::Free(slot_);\n"
         "  else code = nesting::CloseDisturbed("),
    ],
    # records.cc: of two open records the outer one is treated as the inner one.
    "exchanges_two_records": [
        ("  for (unsigned slot = Depth(); slot-- > 0;) {\n"
         "    const Record& record = At(slot);\n    if (IsOpen(record) && ResourceOf",
         "  for (unsigned slot = 0; slot < Depth(); ++slot) {\n"
         "    const Record& record = At(slot);\n    if (IsOpen(record) && ResourceOf"),
    ],
    # scope_host.cc: a HostScope enters the innermost first.
    "brings_back_backwards": [
        ("  for (unsigned slot = 0; slot < host; ++slot) {", "  for (unsigned slot = host; slot-- > 0;) {"),
    ],
    # nesting.cc: what has ended is not closed when it is on top.
    "leaves_the_ended": [
        ("  if (ended == records::kNowhere) return false;", "  return false;"),
    ],
}


def main():
    name, source, output = sys.argv[1:]
    text = pathlib.Path(source).read_text()
    for old, new in MUTATIONS[name]:
        if text.count(old) != 1:
            sys.exit(f"{name}: {source} has {text.count(old)} times:\n{old}")
        text = text.replace(old, new)
    pathlib.Path(output).write_text(text)


if __name__ == "__main__":
    main()
