// Watches the load of every replica in the routes, one stream each for the whole gateway. What
// comes goes straight into the replica's tracker, for the selection policies; the stream's end, or
// silence where a message is due each second, is the first sign of a replica's death and marks it
// down. A new stream's first message ends all doubt: the replica came back. Later ones do not: one
// that fails its calls may well go on telling its load. Owned by main and used from its thread;
// gRPC's threads write the trackers' atomics.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "routing/route_table.h"

namespace penstock::upstream {

class LoadWatch {
 public:
  // token: of the cluster; empty: none is sent.
  LoadWatch(std::string watcher_id, std::string token, const routing::RouteTable& table,
            const base::Clock& clock, base::Log& log);
  LoadWatch(const LoadWatch&) = delete;
  LoadWatch& operator=(const LoadWatch&) = delete;
  // Ends all watches and waits until gRPC has let go.
  ~LoadWatch();

  // Follows the routes, renews what ended, gives up what is silent. About ten times a second.
  void tick();

 private:
  class Stream;
  struct Watched {
    std::shared_ptr<routing::ReplicaTracker> tracker;
    std::unique_ptr<Stream> stream;  // null: never started
    std::chrono::milliseconds backoff{0};
    base::SteadyTime next_start;
  };
  using Key = std::pair<std::string, std::string>;  // replica id, address

  void follow_routes();
  void renew(const Key& key, Watched& watched, base::SteadyTime now);

  const std::string watcher_id_;
  const std::string token_;
  const routing::RouteTable& table_;
  const base::Clock& clock_;
  base::Log& log_;
  uint64_t generation_ = 0;
  std::map<Key, Watched> watched_;
  std::vector<std::unique_ptr<Stream>> ending_;  // of replicas that left the routes
  uint64_t channels_ = 0;
};

}  // namespace penstock::upstream
