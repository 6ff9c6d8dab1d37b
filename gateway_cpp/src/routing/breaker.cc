#include "routing/breaker.h"

#include <algorithm>
#include <array>

#include "routing/ejection.h"

namespace penstock::routing {
namespace {

using std::chrono::milliseconds;
using State = Breaker::State;

// A probe that says nothing for so long makes room for another.
constexpr std::chrono::seconds kProbeTime{10};

enum class Event : std::uint8_t { kDoubt, kForgiven, kAnswered, kBack, kTimeUp };

constexpr std::size_t kStates = 3;
constexpr std::size_t kEvents = 5;
constexpr State C = State::kClosed;
constexpr State O = State::kOpen;
constexpr State H = State::kHalfOpen;
// Columns as in Event. A failure during a doubt is of the same death: it is forgiven.
constexpr std::array<std::array<State, kEvents>, kStates> kNext = {{
    // doubt, forgiven, answered, back, time up
    {O, C, C, C, C},  // closed
    {O, O, C, C, H},  // open
    {O, H, C, C, H},  // half-open
}};

State next(State state, Event event) {
  return kNext[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

bool is_lost(Failure failure) {
  return failure != Failure::kNoFirstEvent && failure != Failure::kBadAnswer;
}

}  // namespace

milliseconds Breaker::fail(Failure failure, Last last, base::SteadyTime now) {
  if (state_ == State::kOpen) return milliseconds(0);
  const bool lost = is_lost(failure);
  ++failures_;
  milliseconds doubt = doubt_after(failures_, lost ? Blame::kProcess : Blame::kAnswer);
  // The probe is what forgiveness waited for.
  if (state_ == State::kHalfOpen) doubt = std::max(doubt, doubt_after(1, Blame::kProcess));
  if (last == Last::kYes && !lost) doubt = milliseconds(0);
  state_ = next(state_, doubt.count() > 0 ? Event::kDoubt : Event::kForgiven);
  if (state_ == State::kOpen) {
    failure_ = failure;
    until_ = now + doubt;
  }
  return doubt;
}

void Breaker::answer() {
  failures_ = 0;
  state_ = next(state_, Event::kAnswered);
}

void Breaker::back() {
  if (is_lost(failure_)) state_ = next(state_, Event::kBack);
}

void Breaker::advance(std::uint32_t calls, base::SteadyTime now) {
  // What was due is so once.
  if (state_ == State::kHalfOpen && now >= probe_until_) probe_until_ = {};
  if (state_ != State::kOpen || now < until_) return;
  state_ = next(state_, Event::kTimeUp);
  older_calls_ = calls;
  probe_until_ = {};
}

void Breaker::sent(base::SteadyTime now) {
  if (state_ == State::kHalfOpen) probe_until_ = now + kProbeTime;
}

void Breaker::released() {
  if (older_calls_ > 0) {
    --older_calls_;
  } else {
    probe_until_ = {};
  }
}

bool Breaker::may_probe(base::SteadyTime now) const {
  return state_ == State::kHalfOpen && now >= probe_until_;
}

base::SteadyTime Breaker::due() const {
  if (state_ == State::kOpen) return until_;
  const bool probed = state_ == State::kHalfOpen && probe_until_ != base::SteadyTime{};
  return probed ? probe_until_ : base::SteadyTime::max();
}

std::string_view Breaker::reason() const {
  switch (failure_) {
    case Failure::kBadAnswer:
      return "failing";
    case Failure::kNoFirstEvent:
      return "slow";
    default:
      return "unreachable";
  }
}

}  // namespace penstock::routing
