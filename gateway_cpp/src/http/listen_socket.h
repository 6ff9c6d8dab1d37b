// The gateway's listening sockets: one for each I/O thread on the same port, between which the
// kernel spreads the clients. And the limit on descriptors, which is one on clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/config.h"
#include "base/error.h"

namespace penstock::http {

// Whether another gateway may listen at the same address.
enum class Claim : uint8_t { kAlone, kBesideOthers };

// Finds out that the address can be listened at, by us alone unless the claim says otherwise, and
// which port it is where none was named. An error names the flag, the address and what to do.
base::Result<base::Address> claim_address(std::string_view flag, const base::Address& wanted,
                                          Claim claim);

// A listening, non-blocking socket on a claimed address; the caller's. -1 and errno if it fails.
int listen_on(const base::Address& address);

// Raises the process's limit on open descriptors as far as it goes and returns it.
uint64_t raise_descriptor_limit();

// How many clients fit below a limit on descriptors, beside what the gateway itself needs: each I/O
// thread has a session to each replica, and each replica is watched.
uint32_t connection_limit(uint32_t wanted, uint64_t descriptors, unsigned threads, size_t replicas);

}  // namespace penstock::http
