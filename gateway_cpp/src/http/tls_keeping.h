// What the port of the clients shows them, if it speaks TLS, and what keeps that fresh. Owned by
// main.
#pragma once

#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "http/session.h"
#include "runtime/side_threads.h"
#include "tls/credentials.h"
#include "tls/credentials_table.h"
#include "tls/credentials_watch.h"

namespace penstock::http {

struct TlsKeeping {
  TlsKeeping(const base::GatewayConfig& config, std::shared_ptr<const tls::Credentials> credentials,
             const base::Clock& clock, base::Log& log, runtime::SideThreads& aside)
      : table(std::move(credentials)),
        watch({config.tls_cert, config.tls_key}, table, clock, log),
        port{table, aside} {}

  tls::CredentialsTable table;
  tls::CredentialsWatch watch;
  const TlsPort port;
};

}  // namespace penstock::http
