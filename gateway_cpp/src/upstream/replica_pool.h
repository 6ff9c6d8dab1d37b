// The sessions of one I/O thread, by replica: opened on first use, renewed with backoff after they
// ended, dropped when the replica has left the routes or was not used for long. Its thread only.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/metrics.h"
#include "routing/route_table.h"
#include "upstream/session.h"
#include "upstream/upstream.h"

namespace penstock::upstream {

class ReplicaPool final : public Upstream {
 public:
  ReplicaPool(asio::io_context& io, const base::Clock& clock, SessionSettings settings,
              base::MetricsShard& metrics, base::Log& log);

  std::unique_ptr<Call> open(const ReplicaAddress& replica, v1::CallRequest request,
                             runtime::Signal& news, SharedBody large) override;

  // Drops what is not needed any more. About once a second.
  void sweep(const routing::Routes& routes);

  size_t sessions() const { return entries_.size(); }

 private:
  struct Entry {
    std::shared_ptr<Session> session;
    std::chrono::milliseconds backoff{0};
    base::SteadyTime next_start;
    base::SteadyTime used;
  };
  using Key = std::pair<std::string, std::string>;  // replica id, address

  void renew(const Key& key, Entry& entry, base::SteadyTime now);

  asio::io_context& io_;
  const base::Clock& clock_;
  const SessionSettings settings_;
  base::MetricsShard& metrics_;
  base::Log& log_;
  std::map<Key, Entry> entries_;
};

}  // namespace penstock::upstream
