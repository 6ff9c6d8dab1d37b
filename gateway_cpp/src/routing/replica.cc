#include "routing/replica.h"

#include <algorithm>

#include "routing/places.h"

namespace penstock::routing {
namespace {

// What a replica of unknown capacity is taken to run at once when loads are compared.
constexpr std::uint32_t kUsualPlaces = 64;
// Prompt tokens that wait in an engine and count as half a call. However many they are, they count
// as less than one: they decide between those that are loaded alike.
constexpr double kHalfACall = 8192;
// Answers that are handed over to a replica between two of its reports: their prompts are about
// what an engine reads in one step.
constexpr std::uint32_t kTakenOverAtOnce = 4;

}  // namespace

bool Replica::takes_over() const { return continued_ < kTakenOverAtOnce; }

bool Replica::holds(std::string_view adapter) const {
  const auto& adapters = has_reported_ ? reported_.adapters : route_.adapters;
  return std::ranges::find(adapters, adapter) != adapters.end();
}

std::uint32_t Replica::limit_by(const Limits& limits) const {
  if (limits.max_ongoing > 0) return limits.max_ongoing;
  return reported_.max_running > 0 ? reported_.max_running : route_.capacity;
}

bool Replica::has_room(const Limits& limits) const {
  const bool engine_full = limits.max_ongoing == 0 && reported_.waiting > 0 &&
                           reported_.running >= reported_.max_running;
  return has_place({.limit = limit_by(limits),
                    .own = own_,
                    .unseen = std::min(unseen_, own_),
                    .elsewhere = elsewhere_,
                    .gateways = std::max(1U, reported_.gateways),
                    .engine_full = engine_full});
}

std::uint32_t Replica::places_left() const {
  if (!standing_.open) return 0;
  if (limit_ == 0) return kUsualPlaces;
  const std::uint64_t taken = std::uint64_t{own_} + elsewhere_;
  return taken < limit_ ? static_cast<std::uint32_t>(limit_ - taken) : 0;
}

// Answers that are gone on with are long from the start, and many come at once where a replica
// died: what was sent and is not seen yet is taken to need as much memory as each of those that
// run.
bool Replica::has_memory_to_continue(const Limits& limits) const {
  const std::uint32_t continued = std::min(continued_, own_);
  if (continued == 0 || limits.kv_pressure <= 0 || reported_.running == 0) return true;
  const double sequences = double(reported_.running) + reported_.waiting + continued;
  return reported_.kv_usage * sequences / reported_.running <= limits.kv_pressure;
}

Standing Replica::stands(const Limits& limits, base::SteadyTime now, bool decodes) const {
  Standing is;
  if (!listed_) return is;
  is.ready = route_.state == ReplicaState::kReady && reported_.serving;
  is.starting = route_.state == ReplicaState::kStarting;
  is.sound = is.ready && !suspected_ && breaker_.state() == Breaker::State::kClosed;
  is.pressured =
      is.ready && limits.kv_pressure > 0 && (preempts_ || reported_.kv_usage > limits.kv_pressure);
  is.continues = is.ready && reported_.resumes ? config_ : 0;
  is.decoder = is.sound && route_.role == Role::kDecode;
  is.slotted = is.ready && reported_.adapter_slots > 0;
  is.load = own_ + elsewhere_;
  const std::uint32_t limit = limit_by(limits);
  const double places = limit > 0 ? limit : kUsualPlaces;
  const auto waiting = static_cast<double>(reported_.waiting_tokens);
  const double calls = is.load + 1 + waiting / (waiting + kHalfACall);
  is.score = calls * double{SlowStart::kFull} / (places * slow_start_.tenths());
  if (is.ready && !is.pressured && has_room(limits) && has_memory_to_continue(limits)) {
    is.open = is.sound || (!suspected_ && breaker_.may_probe(now));
    is.kept = is.open && decodes && is_prefill();
    is.callable = is.open && !is.kept;
    is.spare = !is.sound;
    is.adapting = is.callable && takes_adapters();
  }
  return is;
}

}  // namespace penstock::routing
