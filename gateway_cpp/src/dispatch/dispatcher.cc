#include "dispatch/dispatcher.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

namespace penstock::dispatch {

namespace {

using std::chrono::milliseconds;

std::uint64_t fingerprint(const PlaceRequest& ask) {
  return admission::Appointments::fingerprint(ask.tenant, ask.key, ask.body);
}

// Whether its wait shows how far those that are near the budget lie above their estimates: short
// ones do so by many times, and say nothing of long ones.
bool is_near(const admission::DeploymentLoad& load, milliseconds budget) {
  constexpr int kParts = 4;
  return budget.count() > 0 && !load.wait_is_guessed && load.estimated_wait * kParts >= budget;
}

void wake(const std::vector<std::shared_ptr<Waker>>& wakers) {
  for (const auto& waker : wakers) waker->wake();
}

}  // namespace

void Dispatcher::follow(const routing::DeploymentRoute& route,
                        std::span<const routing::ReplicaRoute> replicas) {
  Wakers wakers;
  {
    const std::lock_guard lock(mutex_);
    availability_ = route.availability;
    expected_ready_at_ = route.expected_ready_at;
    budget_used_up_ = route.budget_used_up;
    budget_resets_at_ = route.budget_resets_at;
    replicas_.follow(route, replicas, clock_.steady_now());
    replicas_.look_for_leaving(clock_.wall_now());
    patience_ = patience_of(route.limits);
    wakers = hand_out();
    tell_if_none_is_left(wakers);
    tell_of_equals(wakers);
  }
  wake(wakers);
}

Appraisal Dispatcher::appraise(std::size_t body_bytes, std::optional<std::uint64_t> max_tokens,
                               std::uint64_t choices) const {
  const std::lock_guard lock(mutex_);
  return {.estimate = tokens_.estimate(body_bytes, max_tokens, choices),
          .least_prompt = tokens_.least_prompt(body_bytes)};
}

// Whoever waits goes before a newcomer, but for those that the free replicas are of no use to.
Admission Dispatcher::admit(Turn& turn, const PlaceRequest& ask,
                            const admission::DeploymentAsk& asked, const MakeWaker& waker) {
  Wakers wakers;
  Admission outcome;
  {
    const std::lock_guard lock(mutex_);
    wakers = hand_out();
    make_room(wakers);
    outcome = place_or_turn(turn, ask, asked, waker, wakers);
  }
  wake(wakers);
  return outcome;
}

Admission Dispatcher::place_or_turn(Turn& turn, const PlaceRequest& ask,
                                    const admission::DeploymentAsk& asked, const MakeWaker& waker,
                                    Wakers& wakers) {
  auto load = load_for(ask);
  if (!appointments_.empty()) leave_room(load, ask, asked.limits.max_queued);
  const auto decision = admission::decide_place(asked, load);
  note_wait(ask, asked, load);
  Admission outcome{.refusal = std::nullopt, .turn = turn_of(ask, load)};
  if (const auto* refusal = std::get_if<admission::Refusal>(&decision)) {
    outcome.refusal = send_away(*refusal, load.estimated_wait, ask);
    return outcome;
  }
  if (!appointments_.empty()) appointments_.keep(fingerprint(ask));
  const bool can_wait = queued() < asked.limits.max_queued;
  Place place = load.with_room > 0 ? reserve_before_shadows(ask, {}, can_wait, wakers) : Place();
  if (place) {
    charge(place, ask);
    give(turn, std::move(place));
    return outcome;
  }
  enroll(turn, ask, waker);
  turn.estimated_ =
      is_near(load, admission::wait_budget(asked)) ? load.estimated_wait : milliseconds(0);
  queue_.push(turn);
  outcome.turn.ahead = queue_.before(turn);
  for (std::size_t i = 0; i < ahead_.of.size(); ++i) outcome.turn.ahead[i] += ahead_.of[i];
  outcome.turn.place = std::accumulate(outcome.turn.ahead.begin(), outcome.turn.ahead.end(), 1U);
  return outcome;
}

// Waits differ by tenant and priority: what one of others would wait says nothing of those that are
// sent away, unless nobody has to wait at all.
void Dispatcher::note_wait(const PlaceRequest& ask, const admission::DeploymentAsk& asked,
                           const admission::DeploymentLoad& load) {
  if (load.wait_is_guessed) return;
  const bool is_away = admission::turns_away(load.turns_away, admission::longest_wait(load),
                                             admission::wait_budget(asked));
  if (is_away == load.turns_away) return;
  const bool is_theirs = ask.tenant == away_tenant_ && ask.priority == away_priority_;
  if (!is_away && !is_theirs && load.with_room == 0) return;
  turns_away_.store(is_away, std::memory_order_relaxed);
  away_tenant_ = ask.tenant;
  away_priority_ = ask.priority;
}

void Dispatcher::answered_elsewhere(const PlaceRequest& ask) {
  const std::lock_guard lock(mutex_);
  if (!appointments_.empty()) appointments_.keep(fingerprint(ask));
}

void Dispatcher::report(routing::Replica& replica, const routing::LoadReport& load) {
  Wakers wakers;
  {
    const std::lock_guard lock(mutex_);
    replicas_.report(replica, load, clock_.steady_now());
    wakers = hand_out();
    if (!shadows_.empty()) leave_to_others(replica, wakers);
    tell_if_none_is_left(wakers);
    tell_of_equals(wakers);
  }
  wake(wakers);
}

milliseconds Dispatcher::note_failure(routing::Replica& replica, routing::Failure failure) {
  Wakers wakers;
  milliseconds doubt;
  {
    const std::lock_guard lock(mutex_);
    doubt = replicas_.note_failure(replica, failure, clock_.steady_now());
    tell_of_equals(wakers);
  }
  wake(wakers);
  return doubt;
}

void Dispatcher::note_answer(routing::Replica& replica, const Cost& cost,
                             const admission::TokenEstimate& told) {
  Wakers wakers;
  {
    const std::lock_guard lock(mutex_);
    tokens_.learn(cost.body_bytes, cost.prompt_tokens, cost.completion_tokens, told);
    replicas_.note_success(replica, clock_.steady_now());
    wakers = hand_out();
    tell_of_equals(wakers);
  }
  wake(wakers);
}

void Dispatcher::note_back(routing::Replica& replica) {
  Wakers wakers;
  {
    const std::lock_guard lock(mutex_);
    replicas_.note_back(replica, clock_.steady_now());
    wakers = hand_out();
    tell_of_equals(wakers);
  }
  wake(wakers);
}

void Dispatcher::advance() {
  Wakers wakers;
  {
    const std::lock_guard lock(mutex_);
    const bool has_opened = replicas_.advance(clock_.steady_now());
    replicas_.look_for_leaving(clock_.wall_now());
    // Revisions are waited for for so long.
    if (has_opened || replicas_.minds_revisions()) wakers = hand_out();
    tell_of_equals(wakers);
  }
  wake(wakers);
}

admission::DeploymentLoad Dispatcher::load_for(const PlaceRequest& ask) const {
  const routing::Counts counts = replicas_.counts();
  admission::DeploymentLoad load{.ready = counts.ready,
                                 .with_room = counts.with_room,
                                 .under_pressure = counts.under_pressure,
                                 .starting = counts.starting,
                                 .queued = queued_before(counts),
                                 .availability = availability_,
                                 .turns_away = turns_away()};
  if (load.with_room == 0) {
    load.estimated_wait = wait_for(ask.tenant, ask.priority);
    load.wait_within = longest_wait(ask, load.estimated_wait);
    load.wait_is_guessed = !wait_.has_learnt();
  }
  if (is_out_of_budget()) {
    load.budget_back_in =
        std::chrono::duration_cast<milliseconds>(budget_resets_at_ - clock_.wall_now());
  }
  if (load.ready == 0 && expected_ready_at_ != base::WallTime{}) {
    load.ready_in =
        std::chrono::duration_cast<milliseconds>(expected_ready_at_ - clock_.wall_now());
  }
  return load;
}

std::uint32_t Dispatcher::queued() const {
  return static_cast<std::uint32_t>(queue_.size()) + ahead_.waiting;
}

// Those that wait although there is room are in nobody's way: no replica that has it is for them.
std::uint32_t Dispatcher::queued_before(const routing::Counts& counts) const {
  return counts.with_room > 0 ? 0 : queued();
}

// Newcomers leave the places of those that are to come back before their own turn. Where
// nobody waits, those that are late are not waited for.
void Dispatcher::leave_room(admission::DeploymentLoad& load, const PlaceRequest& ask,
                            std::uint32_t max_queued) {
  const auto now = clock_.steady_now();
  if (appointments_.is_due(fingerprint(ask), now)) {
    load.wait_within = milliseconds(0);  // its time was given by the estimate alone
    return;
  }
  const auto since = load.queued == 0 ? now : now - admission::Appointments::kGrace;
  const auto due = appointments_.due(ask.tenant, since, now + load.estimated_wait, max_queued);
  load.due = static_cast<std::uint32_t>(due);
  load.wait_for_due = std::chrono::ceil<milliseconds>(wait_.between(in_flight_, now) * load.due);
}

// Who is refused for want of a place is told a time at which there will be one.
admission::Refusal Dispatcher::send_away(admission::Refusal refusal, milliseconds wait,
                                         const PlaceRequest& ask) {
  switch (refusal.reason) {
    case admission::DropReason::kMemoryPressure:
    case admission::DropReason::kQueueFull:
    case admission::DropReason::kWaitExceeded:
    case admission::DropReason::kQueueDeadline: {
      const auto now = clock_.steady_now();
      refusal.retry_after = admission::retry_in(appointments_.send_away(
          ask.tenant, fingerprint(ask), now, wait, wait_.between(in_flight_, now)));
      break;
    }
    default:
      break;
  }
  return refusal;
}

admission::Refusal Dispatcher::deadline_over(const PlaceRequest& ask, milliseconds waited) {
  const std::lock_guard lock(mutex_);
  const milliseconds wait = wait_for(ask.tenant, ask.priority);
  return send_away(admission::queue_deadline_over(waited, wait), wait, ask);
}

void Dispatcher::enroll(Turn& turn, const PlaceRequest& ask, const MakeWaker& waker) {
  turn.tenant = ask.tenant;
  turn.priority = ask.priority;
  turn.work = ask.work();
  turn.since = clock_.steady_now();
  turn.ask_ = &ask;
  turn.waker_ = waker();
  turn.dispatcher_ = shared_from_this();
}

void Dispatcher::give(Turn& turn, Place place) {
  turn.place_ = std::move(place);
  turn.granted_.store(true, std::memory_order_release);
}

bool Dispatcher::ready_besides(std::span<const routing::ReplicaId> excluded) const {
  const auto is_ready = [this](const routing::ReplicaId& id) {
    const auto replica = replicas_.find(id);
    return replica && replica->standing().ready;
  };
  return replicas_.counts().ready > std::ranges::count_if(excluded, is_ready);
}

// What is free goes to who waits: to those that were admitted before and have lost their replica
// first, which may not go to every one and stand in nobody's way. Where all replicas are doubted,
// only a newcomer is sent to one: who waits can wait until one is back.
Dispatcher::Wakers Dispatcher::hand_out() {
  Wakers wakers;
  if ((queue_.empty() && retries_.empty()) || !has_room_for_waiting()) return wakers;
  hand_out_again(wakers);
  while (!queue_.empty() && has_room_for_waiting()) {
    Place place;
    const auto fits = [&](const admission::QueueEntry& entry) {
      place = reserve_for(static_cast<const Turn&>(entry), {});
      return static_cast<bool>(place);
    };
    admission::QueueEntry* next = queue_.next(fits);
    if (next == nullptr) break;
    queue_.start(*next);
    place.charged_ = next->charged;
    note_waited(static_cast<const Turn&>(*next));
    give(static_cast<Turn&>(*next), std::move(place), wakers);
  }
  return wakers;
}

// Who waited for a replica that went says nothing of those that come after.
void Dispatcher::note_waited(const Turn& turn) {
  if (turn.estimated_.count() == 0 || turn.since <= lost_at_) return;
  const auto now = clock_.steady_now();
  slack_.learn(turn.estimated_, std::chrono::ceil<milliseconds>(now - turn.since), now);
}

// Some of those that wait are better off elsewhere then.
void Dispatcher::tell_if_none_is_left(Wakers& wakers) {
  const std::uint32_t ready = replicas_.counts().ready;
  const std::uint32_t before = std::exchange(ready_, ready);
  if (ready < before) lost_at_ = clock_.steady_now();
  const bool none = before > 0 && ready == 0;
  // Those that a canary's candidate has failed wait for the rest of its deployment alone.
  const bool no_rest = ready < before && !replicas_.has_rest({});
  if (!none && !no_rest) return;
  const auto tell = [&](const Turn& turn) {
    if (none || turn.ask_->rest) wakers.push_back(turn.waker_);
  };
  queue_.for_each(
      [&](const admission::QueueEntry& entry) { tell(static_cast<const Turn&>(entry)); });
  for (const Turn* turn : retries_) tell(*turn);
}

bool Dispatcher::has_room_for_waiting() {
  return replicas_.counts().with_room > 0 && replicas_.another_is_usable({}, clock_.steady_now());
}

void Dispatcher::give(Turn& turn, Place place, Wakers& wakers) {
  wakers.push_back(std::move(turn.waker_));
  give(turn, std::move(place));
}

void Dispatcher::close() {
  Wakers wakers;
  {
    const std::lock_guard lock(mutex_);
    replicas_.follow({}, {}, clock_.steady_now());
    for (Turn* turn : std::exchange(retries_, {})) {
      count_ahead(*turn, false);
      give(*turn, {}, wakers);
    }
    const auto anybody = [](const admission::QueueEntry& /*entry*/) { return true; };
    while (admission::QueueEntry* next = queue_.next(anybody)) {
      queue_.remove(*next);
      give(static_cast<Turn&>(*next), {}, wakers);
    }
  }
  wake(wakers);
}

void Dispatcher::leave(Turn& turn) {
  const std::lock_guard lock(mutex_);
  if (turn.has_place()) return;
  if (turn.retries_) {
    if (std::erase(retries_, &turn) > 0) count_ahead(turn, false);
  } else {
    queue_.remove(turn);
  }
}

}  // namespace penstock::dispatch
