// Which client a socket's other side is, by its address.
#pragma once

#include <string>

namespace penstock::http {

// An IPv4 address, or the /64 of an IPv6 one, all of which one client may have; empty: it has none.
std::string network_of_peer(int socket);

}  // namespace penstock::http
