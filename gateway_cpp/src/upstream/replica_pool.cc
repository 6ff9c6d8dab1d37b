#include "upstream/replica_pool.h"

#include <algorithm>
#include <set>

namespace penstock::upstream {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstBackoff{100};
constexpr milliseconds kLastBackoff{1'000};
constexpr std::chrono::minutes kIdle{10};

}  // namespace

ReplicaPool::ReplicaPool(asio::io_context& io, const base::Clock& clock, SessionSettings settings,
                         base::MetricsShard& metrics, base::Log& log)
    : io_(io), clock_(clock), settings_(std::move(settings)), metrics_(metrics), log_(log) {}

std::unique_ptr<Call> ReplicaPool::open(const ReplicaAddress& replica, v1::CallRequest request,
                                        runtime::Signal& news, SharedBody large) {
  Key key{replica.replica_id, replica.address};
  const auto now = clock_.steady_now();
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    found = entries_.emplace(std::move(key), Entry{}).first;
    metrics_.sessions.add(1);
  }
  Entry& entry = found->second;
  entry.used = now;
  if (!entry.session || entry.session->closed_to_calls()) renew(found->first, entry, now);
  return entry.session->open(std::move(request), news, std::move(large));
}

// Within the backoff the ended session stays: it fails calls at once. One that goes away lives on
// with its calls, without the pool.
void ReplicaPool::renew(const Key& key, Entry& entry, base::SteadyTime now) {
  if (entry.session && entry.session->heard()) entry.backoff = milliseconds(0);
  if (entry.session && now < entry.next_start) return;
  entry.backoff = std::clamp(entry.backoff * 2, kFirstBackoff, kLastBackoff);
  entry.next_start = now + entry.backoff;
  entry.session = Session::start(io_, key.second, key.first, settings_, log_);
}

void ReplicaPool::sweep(const routing::Routes& routes) {
  std::set<Key> known;
  for (const auto& [name, deployment] : routes.deployments()) {
    for (const auto& target : deployment->replicas) {
      known.emplace(target.route.id.value, target.route.address);
    }
  }
  const auto idle_since = clock_.steady_now() - kIdle;
  for (auto at = entries_.begin(); at != entries_.end();) {
    Entry& entry = at->second;
    const bool wanted = known.contains(at->first) && entry.used > idle_since;
    if (wanted || entry.session->running() > 0) {
      ++at;
      continue;
    }
    at = entries_.erase(at);
    metrics_.sessions.add(-1);
  }
}

}  // namespace penstock::upstream
