// The gateway's listening sockets: one for each I/O thread on the same port, between which the
// kernel spreads the clients. And the limit on descriptors, which is one on clients.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/config.h"
#include "base/error.h"

namespace penstock::http {

// Finds out that nobody else listens there, and which port it is where none was named. An error
// names the address and what to do.
base::Result<base::Address> claim_address(const base::Address& wanted);

// A listening, non-blocking socket on a claimed address; the caller's. -1 and errno if it fails.
int listen_on(const base::Address& address);

// Raises the process's limit on open descriptors as far as it goes and returns how many clients fit
// below it.
uint32_t raise_descriptor_limit(uint32_t wanted_connections);

}  // namespace penstock::http
