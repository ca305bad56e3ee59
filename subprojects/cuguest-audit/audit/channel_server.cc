// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/channel_server.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "audit/channel.h"

namespace cuguest::audit {
namespace {

constexpr int kBacklog = 1024;
constexpr unsigned kNoExecution = 8;  // MFD_NOEXEC_SEAL, of Linux 6.3, which may be asked for

// Text of 2 * `bytes` characters that nobody can guess; empty without a source of them.
std::string Random(std::size_t bytes) {
  unsigned char random[16];
  if (getrandom(random, bytes, 0) != static_cast<ssize_t>(bytes)) return "";
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    text += "0123456789abcdef"[random[i] >> 4];
    text += "0123456789abcdef"[random[i] & 15];
  }
  return text;
}

// `name` in the abstract namespace. Returns the address's length.
socklen_t Abstract(const std::string& name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

int MakeMemory() {
  const int memory = memfd_create(kChannelMemory, MFD_CLOEXEC | MFD_ALLOW_SEALING | kNoExecution);
  if (memory >= 0 || errno != EINVAL) return memory;
  return memfd_create(kChannelMemory, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

// 0, or errno. All of it is there: a write to the mapping never fails.
int Fill(int memory, std::uint32_t slots) {
  if (const int error = posix_fallocate(memory, 0, static_cast<off_t>(ChannelBytes(slots)))) {
    return error;
  }
  const bool is_written = pwrite(memory, &slots, sizeof(slots), offsetof(ChannelHeader, slots)) ==
                          static_cast<ssize_t>(sizeof(slots));
  const bool is_sealed =
      is_written && fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  return is_sealed ? 0 : errno;
}

bool Send(int socket, int memory) {
  char byte = 0;
  iovec text = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &memory, sizeof(memory));
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

}  // namespace

int MakeChannelMemory(std::uint32_t slots) {
  // A larger file is not an error alone: the process would get SIGXFSZ.
  rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < ChannelBytes(slots)) {
    errno = EFBIG;
    return -1;
  }
  const int memory = MakeMemory();
  if (memory < 0) return -1;
  const int error = Fill(memory, slots);
  if (error == 0) return memory;
  close(memory);
  errno = error;
  return -1;
}

std::string ProgramOf(int pid) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", ignored).string();
}

ChannelServer::ChannelServer(std::uint32_t slots) : slots_(slots), key_(Random(16)) {
  const std::string name = "cuguest-audit-" + Random(8);
  sockaddr_un address;
  const socklen_t length = Abstract(name, &address);
  socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool is_there = socket_ >= 0 && !key_.empty() &&
                        bind(socket_, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                        listen(socket_, kBacklog) == 0;
  if (!is_there)
    error_ = std::string("no socket for the audited processes: ") + std::strerror(errno);
  address_ = name + ":" + key_;
}

void ChannelServer::Close() {
  for (const Client& client : clients_) close(client.socket);
  clients_.clear();
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

void ChannelServer::Serve(ChannelReader* reader) {
  for (int client;
       (client = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
    ucred peer = {};
    socklen_t size = sizeof(peer);
    getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    clients_.push_back({client, peer.pid});
  }
  const auto is_answered = [&](const Client& client) { return Answer(client, reader); };
  clients_.erase(std::remove_if(clients_.begin(), clients_.end(), is_answered), clients_.end());
}

bool ChannelServer::Answer(const Client& client, ChannelReader* reader) {
  char key[64];
  const ssize_t size = recv(client.socket, key, sizeof(key), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  // Others are a process that looks whether there still is a reader, or not of this audit.
  if (size > 0 && key_ == std::string(key, static_cast<std::size_t>(size))) {
    // Before it is answered: it waits, and may end at once with the answer.
    const std::string program = ProgramOf(client.pid);
    const std::string why = Give(client, program, reader);
    if (!why.empty()) refusals_.push_back({client.pid, program, why});
  }
  close(client.socket);
  return true;
}

std::string ChannelServer::Give(const Client& client, const std::string& program,
                                ChannelReader* reader) const {
  const int memory = MakeChannelMemory(slots_);
  if (memory < 0) {
    const std::string size = std::to_string(ChannelBytes(slots_) >> 20) + " MiB";
    if (errno == EFBIG)
      return "the file-size limit (ulimit -f) is below the " + size + " of a channel";
    return "there is no memory for a channel of " + size + ": " + std::strerror(errno);
  }
  std::string why;
  if (!Send(client.socket, memory)) {
    why = "it waited in vain for cuguest-audit, which was stopped or too busy";
  } else if (!reader->Add(memory, client.pid, program)) {
    why = std::string("cuguest-audit cannot map its channel: ") + std::strerror(errno);
  }
  close(memory);
  return why;
}

}  // namespace cuguest::audit
