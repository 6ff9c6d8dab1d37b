#include "http/machine_name.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <system_error>
#include <thread>
#include <utility>

#include "http/syntax.h"

namespace penstock::http {

MachineName::MachineName(std::string own, LookUp look_up)
    : own_(std::move(own)), full_(std::make_shared<Found>()) {
  if (own_.empty()) return;
  try {
    std::thread([found = full_, name = own_, look_up = std::move(look_up)] {
      found->name = look_up(name);
      found->known.store(true, std::memory_order_release);
    }).detach();
  } catch (const std::system_error&) {
    return;  // without a thread to spare the machine has its own name alone
  }
}

bool MachineName::is(std::string_view host) const {
  if (host.empty()) return false;
  const std::string_view own = own_;
  if (same_text(own, host) || same_text(own.substr(0, own.find('.')), host)) return true;
  return full_->known.load(std::memory_order_acquire) && same_text(full_->name, host);
}

std::string own_machine_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

std::string full_machine_name(const std::string& name) {
  addrinfo hints{};
  hints.ai_flags = AI_CANONNAME;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &::freeaddrinfo);
  return found->ai_canonname == nullptr ? std::string() : std::string(found->ai_canonname);
}

}  // namespace penstock::http
