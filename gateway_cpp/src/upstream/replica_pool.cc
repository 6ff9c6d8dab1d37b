#include "upstream/replica_pool.h"

#include "upstream/callers_token.h"

namespace penstock::upstream {

namespace {

constexpr std::chrono::minutes kIdle{10};

}  // namespace

ReplicaPool::ReplicaPool(asio::io_context& io, runtime::SendBatch& sends, const base::Clock& clock,
                         SessionSettings settings, ThreadOf thread,
                         const dispatch::Dispatchers& dispatchers, base::MetricsShard& metrics,
                         base::Log& log)
    : io_(io),
      sends_(sends),
      clock_(clock),
      settings_(std::move(settings)),
      thread_(thread),
      dispatchers_(dispatchers),
      metrics_(metrics),
      log_(log) {}

std::unique_ptr<Call> ReplicaPool::open(const ReplicaAddress& replica, const CallRequest& request,
                                        runtime::Signal& news, SharedBody large) {
  follow_routes();
  const auto now = clock_.steady_now();
  auto& [key, entry] = entry_for({replica.replica_id, replica.address});
  entry.used = now;
  entry.own_token = replica.own_token;
  entry.known = true;  // or nobody would ask for it; the next routes say what is
  if (!entry.session || entry.session->closed_to_calls()) renew(key, entry, now);
  return entry.session->open(request, news, std::move(large));
}

ReplicaPool::Entries::value_type& ReplicaPool::entry_for(KeyView key) {
  if (const auto found = entries_.find(key); found != entries_.end()) return *found;
  metrics_.sessions.add(1);
  return *entries_.try_emplace(Key(key)).first;
}

// Within the backoff the ended session stays: it fails calls at once. One that goes away lives on
// with its calls, without the pool.
void ReplicaPool::renew(const Key& key, Entry& entry, base::SteadyTime now) {
  if (entry.session && entry.session->heard()) entry.backoff.reset();
  if (entry.session && now < entry.next_start) return;
  entry.next_start = now + entry.backoff.next();
  if (entry.watch && entry.session) entry.watch = entry.watch->succeed();
  entry.session = ReplicaSession::start(io_, sends_, key.second, key.first,
                                        settings_for(key, entry), log_, entry.watch);
}

// A replica never sees the cluster's token, but for those that an older agent has given it to.
SessionSettings ReplicaPool::settings_for(const Key& key, const Entry& entry) const {
  SessionSettings settings = settings_;
  if (entry.own_token) settings.token = callers_token(settings.token, key.first);
  return settings;
}

// Drops the sessions of those that left, and watches those that are this thread's.
void ReplicaPool::follow_routes() {
  const auto& dispatchers = dispatchers_.read();
  if (dispatchers == followed_) return;
  followed_ = dispatchers;
  for (auto& [key, entry] : entries_) entry.known = false;
  for (const auto& [uid, dispatcher] : *followed_) {
    for (const auto& replica : dispatcher->replicas()) take_up(dispatcher, replica);
  }
  for (auto& [key, entry] : entries_) {
    if (!entry.known) entry.watch.reset();
  }
}

void ReplicaPool::take_up(const std::shared_ptr<dispatch::Dispatcher>& dispatcher,
                          const std::shared_ptr<routing::Replica>& replica) {
  const bool watches = thread_.watches(replica->id().value);
  const KeyView key{replica->id().value, replica->address()};
  const auto found = entries_.find(key);
  if (replica->address().empty() || (!watches && found == entries_.end())) return;
  Entry& entry = watches ? entry_for(key).second : found->second;
  entry.known = true;
  entry.own_token = replica->own_token();
  if (!watches || (entry.watch && entry.watch->replica() == replica)) return;
  // A session that is there already tells of no load, or tells it to who has left.
  entry.watch = std::make_shared<LoadWatch>(dispatcher, replica, clock_);
  entry.session.reset();
}

void ReplicaPool::tick() {
  follow_routes();
  const auto now = clock_.steady_now();
  for (auto& [key, entry] : entries_) {
    if (!entry.watch) continue;
    if (!entry.session || entry.session->closed_to_calls()) renew(key, entry, now);
    entry.watch->look_for_silence(now);
  }
}

void ReplicaPool::sweep() {
  const auto idle_since = clock_.steady_now() - kIdle;
  for (auto at = entries_.begin(); at != entries_.end();) {
    Entry& entry = at->second;
    if (entry.session) entry.session->sweep();
    const bool wanted = entry.known && (entry.watch || entry.used > idle_since);
    if (wanted || (entry.session && entry.session->running() > 0)) {
      ++at;
      continue;
    }
    at = entries_.erase(at);
    metrics_.sessions.add(-1);
  }
}

}  // namespace penstock::upstream
