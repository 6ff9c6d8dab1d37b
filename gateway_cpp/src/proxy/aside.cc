// What large bodies and suspects take besides the phases that all requests go through: work beside
// the I/O threads, fingerprints, and waiting for a place.
#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/exchange.h"
#include "proxy/request_flow.h"

namespace penstock::proxy {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPlacePoll{100};
// A suspect waits for its place so long: most answers are shorter, and no stream has to be opened
// to keep its client waiting.
constexpr milliseconds kPlacePatience{10'000};
// What requests are looked at in one tick, in bytes that are hashed: some milliseconds. Looking at
// one costs as much as hashing kLook besides.
constexpr size_t kLooksPerTick = 1024UL * 1024;
constexpr size_t kLook = 1024;

}  // namespace

// The request goes on when its body has been read, or ends at once when its client has left.
Awaitable<RequestFlow::Failed> RequestFlow::parse_aside(Exchange& x) {
  x.large = std::make_shared<LargeBody>(std::move(x.ask.body), std::move(x.ask.share));
  x.opening.bytes = 0;  // it is hashed at the side, too
  x.job = BodyJob::reading(*x.ask.endpoint, x.large, parts_.config.body_elements);
  BodyJob::start(x.job, parts_.aside, parts_.io, x.reply.signal());
  while (!x.job->done()) {
    if (x.stop() != Stop::kNo) co_return stop_error(x.stop());
    co_await x.reply.signal().wait();
  }
  const auto job = std::exchange(x.job, nullptr);
  if (!*job->request) co_return job->request->error();
  x.request = std::move(**job->request);
  co_return std::nullopt;
}

// Lets go of the body; its fingerprint will be there when it is asked for.
Awaitable<void> RequestFlow::hash_aside(Exchange& x) {
  auto body = std::exchange(x.large, nullptr);
  if (x.fingerprint) co_return;
  x.job = BodyJob::hashing(x.at.route.deployment->uid, x.ask.endpoint->path, std::move(body));
  BodyJob::start(x.job, parts_.aside, parts_.io, x.reply.signal());
}

// Also for a client that has left: what an engine died of is to be known. Only the end of the
// gateway waits for none.
Awaitable<void> RequestFlow::know_fingerprint(Exchange& x) {
  if (x.fingerprint) co_return;
  if (!x.large && !x.job) {
    x.fingerprint =
        admission::fingerprint_of(x.at.route.deployment->uid, x.ask.endpoint->path, x.ask.body);
    co_return;
  }
  if (!x.job) {
    const auto body = x.large;  // another replica may need it yet
    co_await hash_aside(x);
    x.large = body;
  }
  while (!x.job->done()) {
    if (x.reply.cut_short()) co_return;
    co_await x.reply.signal().wait();
  }
  x.fingerprint = x.job->fingerprint;
  x.job.reset();
}

// Where there is no engine, none dies of it.
Awaitable<RequestFlow::Failed> RequestFlow::admit_suspect(Exchange& x) {
  if (x.at.route.deployment->managed) co_return std::nullopt;
  co_await know_fingerprint(x);
  if (!x.fingerprint) co_return stop_error(Stop::kDraining);
  const auto standing = parts_.suspects.suspicion(*x.fingerprint, parts_.clock.wall_now());
  if (!standing) co_return standing.error();
  x.suspect = *standing == admission::Suspicion::kSuspect;
  co_return std::nullopt;
}

// Before another attempt: the client may have left by now, there may be other replicas, and the
// request may be quarantined.
Awaitable<RequestFlow::Failed> RequestFlow::reconsider(Exchange& x) {
  if (x.stop() != Stop::kNo) co_return stop_error(x.stop());
  const auto gone = resolve_again(x);
  if (gone || parts_.suspects.empty()) co_return gone;
  co_return co_await admit_suspect(x);
}

// A suspect waits for its turn as all do. When that has come it goes before those that wait, as one
// does that has lost its replica, until it has a place where no other suspect is. Neither an error
// nor a place: it is a suspect no more.
Awaitable<RequestFlow::Failed> RequestFlow::select_for_suspect(Exchange& x) {
  Failed over;
  if (std::exchange(x.has_turn, false)) {
    over = co_await wait_for_turn(x);
    if (!over) over = take_place(x);
    if (!over) keep_if_alone(x);
  }
  while (!over && !x.place && x.suspect) {
    over = place_suspect(x);
    if (!over && !x.place) over = co_await wait_for_place(x);
  }
  co_return over;
}

// A place where another suspect runs is none.
void RequestFlow::keep_if_alone(Exchange& x) {
  if (!x.place || board(x, x.place.replica()->id())) return;
  x.place.worked(0);
  x.place.cut_short();
  x.place.release();
}

// It takes a place where no other suspect is, or asks to be given one. An error: there is no such
// replica, and none will be.
RequestFlow::Failed RequestFlow::place_suspect(Exchange& x) {
  const auto tried = x.failover.tried();
  std::vector<routing::ReplicaId> excluded(tried.begin(), tried.end());
  if (!x.at.dispatcher->is_ready_besides(excluded)) return no_replica_left(x);
  if (parts_.suspects.runs(*x.fingerprint)) return std::nullopt;
  for (const auto& replica : x.at.dispatcher->replicas()) {
    if (parts_.suspects.occupied(replica->id().value)) excluded.push_back(replica->id());
  }
  x.at.dispatcher->again(x.turn, x.wanted, std::move(excluded), [&x] { return x.make_waker(); });
  if (!x.turn.has_place()) return std::nullopt;
  x.place = x.turn.take();
  keep_if_alone(x);
  return std::nullopt;
}

// It takes its place among the suspects of the replica; false: another one was faster.
bool RequestFlow::board(Exchange& x, const routing::ReplicaId& replica) {
  x.aboard.leave();
  auto aboard = parts_.suspects.board(*x.fingerprint, replica.value, parts_.clock.steady_now());
  if (!aboard) return false;
  x.aboard = std::move(*aboard);
  return true;
}

// Others have their turn meanwhile. By the next look there may be other replicas, and the request
// may be quarantined, or clear.
Awaitable<RequestFlow::Failed> RequestFlow::wait_for_place(Exchange& x) {
  x.aboard.leave();
  const auto now = parts_.clock.steady_now();
  if (!x.waits_since) x.waits_since = now;
  if (now - *x.waits_since >= kPlacePatience) {
    x.turn.leave();
    co_return admission::suspect_must_wait(place_in(x));
  }
  runtime::TimerWheel::Timer again(parts_.timers, x.reply.signal());
  again.arm(kPlacePoll);
  while (!again.fired() && !x.turn.has_place()) {
    if (x.stop() != Stop::kNo) co_return stop_error(x.stop());
    co_await x.reply.signal().wait();
  }
  x.place = x.turn.take();
  keep_if_alone(x);
  if (x.place) co_return std::nullopt;
  co_return co_await reconsider(x);
}

// Until a suspect that has waited in vain may find its place: on a replica that is there, or on one
// that is expected sooner.
milliseconds RequestFlow::place_in(const Exchange& x) const {
  std::vector<std::string_view> ids;
  const auto replicas = x.at.dispatcher->replicas();
  ids.reserve(replicas.size());
  for (const auto& replica : replicas) ids.push_back(replica->id().value);
  const auto wait = std::chrono::ceil<milliseconds>(
      parts_.suspects.free_in(*x.fingerprint, ids, parts_.clock.steady_now()));
  const auto ready = std::chrono::ceil<milliseconds>(x.at.route.deployment->expected_ready_at -
                                                     parts_.clock.wall_now());
  return ready.count() > 0 ? std::min(wait, ready) : wait;
}

void RequestFlow::look_for_suspects() {
  const uint64_t findings = parts_.suspects.findings();
  if (findings != findings_) to_look_at_.splice(to_look_at_.end(), openings_);
  findings_ = findings;
  // Whoever is woken may end, and others with it.
  for (size_t work = 0; work < kLooksPerTick && !to_look_at_.empty();) {
    Opening& opening = to_look_at_.front();
    to_look_at_.pop_front();
    openings_.push_back(opening);
    work += kLook + opening.bytes;
    opening.look_again = true;
    opening.news->raise();
  }
}

// An engine may have died of the same request while this one waited: then it goes nowhere before it
// was looked at.
Awaitable<RequestFlow::Failed> RequestFlow::look_at_waiting(Exchange& x) {
  x.opening.look_again = false;
  const bool was_suspect = x.suspect;
  const auto no = co_await admit_suspect(x);
  if (x.suspect && !was_suspect) x.place.release();
  co_return no;
}

// Calls back what turns out to be a suspect that must not run where it is, because the same request
// runs elsewhere or another suspect is there, and refuses what is quarantined by now. One whose
// answer has begun stays, and so does a suspect that was known as one: it keeps its place.
Awaitable<RequestFlow::Failed> RequestFlow::recall(Exchange& x) {
  x.opening.look_again = false;
  const bool was_suspect = x.suspect;
  const auto no = co_await admit_suspect(x);
  if (no || was_suspect) co_return no;
  const upstream::Call& call = *x.attempt->call;
  const bool begun = call.has_head() || call.has_bytes() || call.ended();
  if (!x.suspect || begun || board(x, {x.attempt->target.id})) co_return std::nullopt;
  const std::string replica = x.attempt->target.id;
  x.attempt.reset();
  x.failover.recalled();
  x.record().attempts = x.failover.attempts();
  parts_.log.info("a request was called back: an engine died of the same one elsewhere",
                  {{"request_id", x.ask.request_id},
                   {"fingerprint", x.fingerprint->hex()},
                   {"replica_id", replica}});
  co_return std::nullopt;
}

}  // namespace penstock::proxy
