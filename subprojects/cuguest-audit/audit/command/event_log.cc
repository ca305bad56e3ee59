// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/event_log.h"

namespace cuguest::audit {

void EventLog::OnProcess(const Process& process) {
  if (!file_.is_open()) return;
  writer_.OnProcess(process);
  Write(kBuffered);
}

void EventLog::OnSource(std::uint32_t process, const std::string& name) {
  if (!file_.is_open()) return;
  writer_.OnSource(process, name);
  Write(kBuffered);
}

void EventLog::OnNote(std::uint32_t process, const std::string& text) {
  if (!file_.is_open()) return;
  writer_.OnNote(process, text);
  Write(kBuffered);
}

void EventLog::OnUnaudited(std::uint32_t process, const std::string& why) {
  if (!file_.is_open()) return;
  writer_.OnUnaudited(process, why);
  Write(kBuffered);
}

void EventLog::OnLimit(std::uint32_t process, const std::string& text) {
  if (!file_.is_open()) return;
  writer_.OnLimit(process, text);
  Write(kBuffered);
}

void EventLog::OnLoss(std::uint32_t process, const Loss& loss) {
  if (!file_.is_open()) return;
  writer_.OnLoss(process, loss);
  Write(kBuffered);
}

void EventLog::OnObject(std::uint32_t process, std::uint32_t index, const Object& object) {
  if (!file_.is_open()) return;
  writer_.OnObject(process, index, object);
  Write(kBuffered);
}

void EventLog::OnEvent(std::uint32_t process, const Event& event) {
  if (!file_.is_open()) return;
  writer_.OnEvent(process, event);
  Write(kBuffered);
}

// Unless there is less than `kept`.
void EventLog::Write(std::size_t kept) {
  if (text_.size() < kept) return;
  file_.Write(text_);
  text_.clear();
}

void EventLog::Flush() {
  Write(0);
  file_.Flush();
}

std::string EventLog::Close() {
  if (file_.is_open()) writer_.End();
  Write(0);
  return file_.Close();
}

}  // namespace cuguest::audit
