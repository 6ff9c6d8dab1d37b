// Who is at the other end of a socket, by its address.
#pragma once

#include <string>

namespace penstock::http {

// Without the port; an IPv4 client of a socket of both kinds by its IPv4 address. Empty: the system
// does not say.
std::string peer_address(int socket);

// What one client may have all of: an IPv4 address, or the /64 of an IPv6 one.
std::string network_of(const std::string& address);

}  // namespace penstock::http
