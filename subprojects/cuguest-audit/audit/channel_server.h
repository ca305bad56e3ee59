// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives channels to the processes that ask for one; see Note [Where a channel comes from].
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_CHANNEL_SERVER_H_
#define CUGUEST_AUDIT_CHANNEL_SERVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "audit/channel_reader.h"

namespace cuguest::audit {

// The memory of a channel of `slots` slots, a power of two: a descriptor that the caller closes, or
// -1 and errno, which is EFBIG if it is larger than the file-size limit of the calling process.
int MakeChannelMemory(std::uint32_t slots);

// The path of a process's executable; empty if it is gone or another user's.
[[nodiscard]] std::string ProgramOf(int pid);

class ChannelServer {
 public:
  explicit ChannelServer(std::uint32_t slots);
  ~ChannelServer() { Close(); }
  ChannelServer(const ChannelServer&) = delete;
  ChannelServer& operator=(const ChannelServer&) = delete;

  // "", or why processes cannot ask.
  [[nodiscard]] const std::string& error() const { return error_; }
  // The value of kChannelVariable.
  [[nodiscard]] const std::string& address() const { return address_; }
  // Can be read when a process asks; -1 if there is none.
  [[nodiscard]] int descriptor() const { return socket_; }

  // Gives a channel, which `reader` reads, to each process that has asked since the last time.
  void Serve(ChannelReader* reader);
  // From now on no process is given a channel, and none waits for one.
  void Close();

  struct Refusal {
    int pid;
    std::string program;  // see ProgramOf()
    std::string why;      // "the file-size limit is ..."
  };
  // Processes that asked in vain.
  [[nodiscard]] const std::vector<Refusal>& refusals() const { return refusals_; }

 private:
  struct Client {
    int socket;
    int pid;
  };

  // False as long as the client has not sent its key.
  bool Answer(const Client& client, ChannelReader* reader);
  // "", or why not.
  std::string Give(const Client& client, const std::string& program, ChannelReader* reader) const;

  const std::uint32_t slots_;
  std::string key_;
  std::string address_;
  std::string error_;
  int socket_ = -1;
  std::vector<Client> clients_;
  std::vector<Refusal> refusals_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_CHANNEL_SERVER_H_
