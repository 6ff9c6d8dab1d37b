// The sessions of one I/O thread, by replica: opened on first use, renewed with backoff after they
// ended, dropped when the replica has left the routes or was not used for long. Each replica's load
// is watched by one thread of the gateway: there its session is opened at once and stays. Its
// thread only.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "dispatch/dispatchers.h"
#include "upstream/load_watch.h"
#include "upstream/replica_session.h"
#include "upstream/upstream.h"

namespace penstock::upstream {

// Which of the gateway's threads a pool is on: the replicas of all are shared out among them.
struct ThreadOf {
  unsigned index = 0;
  unsigned threads = 1;

  bool watches(const std::string& replica_id) const {
    return std::hash<std::string>{}(replica_id) % threads == index;
  }
};

class ReplicaPool final : public Upstream {
 public:
  // `settings.token`: the cluster's.
  ReplicaPool(asio::io_context& io, runtime::SendBatch& sends, const base::Clock& clock,
              SessionSettings settings, ThreadOf thread, const dispatch::Dispatchers& dispatchers,
              base::MetricsShard& metrics, base::Log& log);

  std::unique_ptr<Call> open(const ReplicaAddress& replica, const CallRequest& request,
                             runtime::Signal& news, SharedBody large) override;

  // Takes up who is in the routes now, and renews the sessions that watch. About twenty to thirty
  // times a second.
  void tick();
  // Drops what is not needed any more. About once a second.
  void sweep();

  size_t sessions() const { return entries_.size(); }

 private:
  struct Entry {
    std::shared_ptr<ReplicaSession> session;  // null: none was needed so far
    std::shared_ptr<LoadWatch> watch;         // null: another thread's
    bool known = false;                       // in the routes
    bool own_token = false;                   // as the routes say
    base::Backoff backoff;
    base::SteadyTime next_start{};
    base::SteadyTime used{};
  };
  using Key = std::pair<std::string, std::string>;  // replica id, address
  using KeyView = std::pair<std::string_view, std::string_view>;
  struct Before {
    using is_transparent = void;
    bool operator()(KeyView a, KeyView b) const { return a < b; }
  };
  using Entries = std::map<Key, Entry, Before>;

  void follow_routes();
  Entries::value_type& entry_for(KeyView key);
  void take_up(const std::shared_ptr<dispatch::Dispatcher>& dispatcher,
               const std::shared_ptr<routing::Replica>& replica);
  void renew(const Key& key, Entry& entry, base::SteadyTime now);
  SessionSettings settings_for(const Key& key, const Entry& entry) const;

  asio::io_context& io_;
  runtime::SendBatch& sends_;
  const base::Clock& clock_;
  const SessionSettings settings_;
  const ThreadOf thread_;
  dispatch::DispatchReader dispatchers_;
  std::shared_ptr<const dispatch::Dispatchers::ByUid> followed_;
  base::MetricsShard& metrics_;
  base::Log& log_;
  Entries entries_;
};

}  // namespace penstock::upstream
