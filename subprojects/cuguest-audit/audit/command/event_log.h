// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The log of --log: what LogWriter writes, in a file.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_EVENT_LOG_H_
#define CUGUEST_AUDIT_COMMAND_EVENT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "audit/command/output_file.h"
#include "audit/log.h"

namespace cuguest::audit {

// Holds at most kBuffered bytes and one event that are not in the file yet.
class EventLog final : public EventSink {
 public:
  static constexpr std::size_t kBuffered = 1 << 16;

  EventLog() : writer_(&text_) {}

  // As OutputFile's. Without it nothing below has an effect.
  std::string Open(const std::string& path) { return file_.Open(path); }

  void OnProcess(const Process& process) override;
  void OnSource(std::uint32_t process, const std::string& name) override;
  void OnNote(std::uint32_t process, const std::string& text) override;
  void OnUnaudited(std::uint32_t process, const std::string& why) override;
  void OnLimit(std::uint32_t process, const std::string& text) override;
  void OnLoss(std::uint32_t process, const Loss& loss) override;
  void OnObject(std::uint32_t process, std::uint32_t index, const Object& object) override;
  void OnEvent(std::uint32_t process, const Event& event) override;

  void Flush();
  // Returns "", or why the log ends early.
  std::string Close();

 private:
  void Write(std::size_t kept);

  OutputFile file_;
  std::string text_;
  LogWriter writer_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_EVENT_LOG_H_
