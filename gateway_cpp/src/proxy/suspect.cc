// What is done about a request that engines may die of: it is known by its fingerprint, and runs
// where no other such request does, or nowhere.
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

constexpr std::string_view kCalledBack = "called_back";  // of an attempt
constexpr milliseconds kPlacePoll{100};
constexpr milliseconds kHeard{100};  // of an engine's end, by all that were aboard
// A suspect waits for its place so long: most answers are shorter, and no stream has to be opened
// to keep its client waiting.
constexpr milliseconds kPlacePatience{10'000};

}  // namespace

// Also for a client that has left: what an engine died of is to be known. Only the end of the
// gateway waits for none.
Awaitable<void> RequestFlow::know_fingerprint(Exchange& x) {
  if (x.danger.fingerprint) co_return;
  if (!x.large && !x.job) {
    x.danger.fingerprint =
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
  x.danger.fingerprint = x.job->fingerprint;
  x.job.reset();
}

// Where there is no engine, none dies of it.
Awaitable<base::MaybeError> RequestFlow::admit_suspect(Exchange& x) {
  if (x.at.route.deployment->managed) co_return std::nullopt;
  co_await know_fingerprint(x);
  if (!x.danger.fingerprint) co_return stop_error(Stop::kDraining);
  const auto standing = parts_.suspects.suspicion(*x.danger.fingerprint, parts_.clock.wall_now());
  if (!standing) co_return standing.error();
  x.danger.suspect = *standing == admission::Suspicion::kSuspect && !x.danger.spared;
  x.record().suspect |= x.danger.suspect;
  co_return std::nullopt;
}

bool RequestFlow::is_quarantined(const Exchange& x) {
  if (!x.danger.fingerprint || parts_.suspects.empty()) return false;
  return !parts_.suspects.suspicion(*x.danger.fingerprint, parts_.clock.wall_now());
}

// A second crash is proof against one request alone: until all that were aboard have heard of it,
// nobody knows.
bool RequestFlow::is_to_be_judged(const Exchange& x, base::ResumeReason reason) {
  return reason == base::ResumeReason::kCrash && x.attempts.failover().crashes() > 1;
}

// An error: it is proved, and the request goes nowhere.
Awaitable<base::MaybeError> RequestFlow::judge(Exchange& x) {
  runtime::TimerWheel::Timer heard(parts_.timers, x.reply.signal());
  heard.arm(kHeard);
  while (!heard.fired() && x.stop() == Stop::kNo) co_await x.reply.signal().wait();
  co_return is_quarantined(x) ? x.attempts.last() : std::nullopt;
}

// Before another attempt: the client may have left by now, there may be other replicas, and the
// request may be quarantined.
Awaitable<base::MaybeError> RequestFlow::reconsider(Exchange& x) {
  if (x.stop() != Stop::kNo) co_return stop_error(x.stop());
  const auto gone = resolve_again(x);
  if (gone || parts_.suspects.empty()) co_return gone;
  co_return co_await admit_suspect(x);
}

// A suspect waits for its turn as all do. When that has come it goes before those that wait, as one
// does that has lost its replica, until it has a place where no other suspect is. Neither an error
// nor a place: it is a suspect no more.
Awaitable<base::MaybeError> RequestFlow::select_for_suspect(Exchange& x) {
  base::MaybeError over;
  if (x.at.has() == Has::kTurn) {
    over = co_await wait_for_turn(x);
    if (!over) over = take_place(x);
    if (!over) keep_if_alone(x);
  }
  while (!over && !x.at.has_place() && x.danger.suspect) {
    over = place_suspect(x);
    if (!over && !x.at.has_place()) over = co_await wait_for_place(x);
  }
  co_return over;
}

// A place where another suspect runs is none.
void RequestFlow::keep_if_alone(Exchange& x) {
  if (x.at.has_place() && !board(x, x.at.replica()->id())) x.at.leave_unused();
}

// It takes a place where no other suspect is, or asks to be given one. An error: there is no such
// replica, and none will be.
base::MaybeError RequestFlow::place_suspect(Exchange& x) {
  const auto refused = x.attempts.failover().refused();
  std::vector<routing::ReplicaId> excluded(refused.begin(), refused.end());
  if (!x.at.dispatcher->is_ready_besides(excluded)) return no_replica_left(x);
  if (!exclude_suspects(x, excluded)) return std::nullopt;
  const bool waits = x.at.dispatcher->again(x.at.turn(), x.at.wanted, std::move(excluded),
                                            [&x] { return x.make_waker(); });
  if (!waits) return std::nullopt;
  x.at.queued();
  if (x.at.was_given_place() && x.at.take_place()) keep_if_alone(x);
  return std::nullopt;
}

// Those where another suspect runs; false: the same one runs, wherever that is.
bool RequestFlow::exclude_suspects(const Exchange& x,
                                   std::vector<routing::ReplicaId>& excluded) const {
  if (parts_.suspects.runs(*x.danger.fingerprint)) return false;
  for (const auto& replica : x.at.dispatcher->replicas()) {
    if (parts_.suspects.occupied(replica->id().value)) excluded.push_back(replica->id());
  }
  return true;
}

// It takes its place among the suspects of the replica; false: another one was faster.
bool RequestFlow::board(Exchange& x, const routing::ReplicaId& replica) {
  x.danger.aboard.leave();
  auto aboard =
      parts_.suspects.board(*x.danger.fingerprint, replica.value, parts_.clock.steady_now());
  if (!aboard) return false;
  x.danger.aboard = std::move(*aboard);
  return true;
}

// Others have their turn meanwhile. By the next look there may be other replicas, and the request
// may be quarantined, or clear.
Awaitable<base::MaybeError> RequestFlow::wait_for_place(Exchange& x) {
  x.danger.aboard.leave();
  const auto now = parts_.clock.steady_now();
  if (!x.danger.waits_since) x.danger.waits_since = now;
  if (now - *x.danger.waits_since >= kPlacePatience) {
    x.at.leave_queue();
    co_return admission::suspect_must_wait(place_in(x));
  }
  runtime::TimerWheel::Timer again(parts_.timers, x.reply.signal());
  again.arm(kPlacePoll);
  while (!again.fired() && !x.at.was_given_place()) {
    if (x.stop() != Stop::kNo) co_return stop_error(x.stop());
    co_await x.reply.signal().wait();
  }
  if (x.at.take_place()) keep_if_alone(x);
  if (x.at.has_place()) co_return std::nullopt;
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
      parts_.suspects.free_in(*x.danger.fingerprint, ids, parts_.clock.steady_now()));
  const auto ready = std::chrono::ceil<milliseconds>(x.at.route.deployment->expected_ready_at -
                                                     parts_.clock.wall_now());
  return ready.count() > 0 ? std::min(wait, ready) : wait;
}

// An engine may have died of the same request while this one waited: then it goes nowhere before it
// was looked at.
Awaitable<base::MaybeError> RequestFlow::look_at_waiting(Exchange& x) {
  x.opening.look_again = false;
  const bool was_suspect = x.danger.suspect;
  const auto no = co_await admit_suspect(x);
  if (x.danger.suspect && !was_suspect) x.at.leave_queue();
  co_return no;
}

// Calls back what turns out to be a suspect that must not run where it is, because the same request
// runs elsewhere or another suspect is there, and refuses what is quarantined by now. One whose
// answer has begun stays, and so does a suspect that was known as one: it keeps its place.
Awaitable<base::MaybeError> RequestFlow::recall(Exchange& x) {
  x.opening.look_again = false;
  const bool was_suspect = x.danger.suspect;
  const auto no = co_await admit_suspect(x);
  if (no || was_suspect) co_return no;
  const Attempt& attempt = x.attempts.now();
  const std::string replica = attempt.target().id;
  if (!x.danger.suspect || attempt.has_news() || board(x, {replica})) co_return std::nullopt;
  x.record().end_attempt(kCalledBack, x.settlement.age_us());
  x.attempts.recall();
  parts_.log.info("a request was called back: an engine died of the same one elsewhere",
                  {{"request_id", x.ask.request_id},
                   {"fingerprint", x.danger.fingerprint->hex()},
                   {"replica_id", replica}});
  co_return std::nullopt;
}

}  // namespace penstock::proxy
