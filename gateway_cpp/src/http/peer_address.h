// The address at the other end of a socket, for people who read logs.
#pragma once

#include <string>

namespace penstock::http {

// Without the port; an IPv4 client of a socket of both kinds by its IPv4 address. Empty: the system
// does not say.
std::string peer_address(int socket);

}  // namespace penstock::http
