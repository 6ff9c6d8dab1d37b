#include "http/listen_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

namespace penstock::http {

namespace {

constexpr int kBacklog = 4096;
constexpr rlim_t kReservedDescriptors = 512;  // sessions to replicas, logs, libraries

enum class Sharing : uint8_t { kAlone, kWithOurThreads };

struct Resolved {
  sockaddr_storage address{};
  socklen_t size = 0;
};

base::Result<Resolved> resolve(const base::Address& address) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const int failed = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  if (failed != 0) {
    return base::make_error(base::Kind::kConfig, "--listen: the host '" + address.host +
                                                     "' is not known (" + ::gai_strerror(failed) +
                                                     "); name an address of this machine");
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &::freeaddrinfo);
  Resolved resolved;
  std::memcpy(&resolved.address, found->ai_addr, found->ai_addrlen);
  resolved.size = found->ai_addrlen;
  return resolved;
}

int bound_socket(const Resolved& where, Sharing sharing) {
  const int fd = ::socket(where.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (sharing == Sharing::kWithOurThreads) {
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  }
  const auto* address = reinterpret_cast<const sockaddr*>(&where.address);
  if (::bind(fd, address, where.size) == 0 && ::listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

base::Result<base::Address> claim_address(const base::Address& wanted) {
  auto where = resolve(wanted);
  if (!where) return where.error();
  const int fd = bound_socket(*where, Sharing::kAlone);
  if (fd < 0) {
    const std::string reason =
        errno == EADDRINUSE ? "another process listens there; stop it, or pass another --listen"
                            : std::string(std::strerror(errno)) + "; pass another --listen";
    return base::make_error(base::Kind::kConfig,
                            "cannot listen on " + wanted.text() + ": " + reason);
  }
  base::Address claimed{wanted.host, port_of(fd)};
  ::close(fd);
  return claimed;
}

int listen_on(const base::Address& address) {
  const auto where = resolve(address);
  return where ? bound_socket(*where, Sharing::kWithOurThreads) : -1;
}

uint32_t raise_descriptor_limit(uint32_t wanted_connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted_connections;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t reserved = std::min(kReservedDescriptors, limit.rlim_cur / 2);
  return static_cast<uint32_t>(std::min<rlim_t>(wanted_connections, limit.rlim_cur - reserved));
}

}  // namespace penstock::http
