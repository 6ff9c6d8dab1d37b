// Where a request is: one deployment at a time, entered and left in one place (destination.cc) by
// whatever way it comes: its name, a canary, the way back from one, a rung. With it goes what the
// request has there: its turn in the queue, its place on a replica.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "dispatch/dispatcher.h"
#include "proxy/account.h"
#include "proxy/decision.h"
#include "proxy/stage.h"
#include "routing/route_table.h"

namespace penstock::proxy {

// What it has there.
enum class Has : uint8_t {
  kNothing,  // or its place went with a call
  kTurn,     // in the queue, or given a place that it did not take yet
  kPlace,    // for the next attempt
};

inline constexpr Transitions<Has> kDestination{
    {Has::kNothing, {Has::kTurn}},
    {Has::kTurn, {Has::kPlace, Has::kNothing}},
    {Has::kPlace, {Has::kNothing}},
};

class Destination {
 public:
  explicit Destination(std::shared_ptr<Account> payer) : account(std::move(payer)) {}

  Way way = Way::kNamed;
  routing::Route route;
  std::shared_ptr<dispatch::Dispatcher> dispatcher;  // the deployment's; null: not resolved
  std::shared_ptr<Account> account;                  // what it costs there; never null
  base::SteadyTime entered;                          // when its admission there began
  dispatch::PlaceRequest wanted;                     // what the dispatcher decides by
  uint32_t least_prompt = 0;                         // tokens that its prompt has at least
  std::chrono::milliseconds estimated_wait{0};       // as it was told then

  Has has() const { return has_.now(); }
  bool refused() const { return has_.refused(); }
  // Nearly all have the place that they were admitted to at once.
  bool was_given_place() const { return has() == Has::kTurn && turn_.has_place(); }
  bool has_place() const { return has() == Has::kPlace; }
  const std::shared_ptr<routing::Replica>& replica() const { return place_.replica(); }

  // What another replica has to be of to go on with its answer; 0: none can.
  uint32_t config() const { return place_.config(); }

  // For the dispatcher, which puts it in the queue or gives it a place: then it is queued().
  dispatch::Turn& turn() { return turn_; }
  void queued() { has_.advance(Has::kTurn); }
  // The place that it was given; false: it has none, and waits no more.
  bool take_place() {
    if (has() != Has::kTurn) return has_place();
    place_ = turn_.take();
    has_.advance(place_ ? Has::kPlace : Has::kNothing);
    return has_place();
  }
  // It is at that replica from now on, if there is room.
  bool move_place(const routing::ReplicaId& to) {
    return to == replica()->id() ? keep_place() : dispatcher->move(place_, to, wanted.pick);
  }
  // It goes with a call.
  dispatch::Place give_place() {
    has_.advance(Has::kNothing);
    return std::move(place_);
  }
  // It waits no more, and has no place.
  void leave_queue() {
    turn_.leave();
    place_.release();
    if (has() != Has::kNothing) has_.advance(Has::kNothing);
  }
  // Likewise, and nothing is learnt of a place that nobody used.
  void leave_unused() {
    place_.worked(0);
    place_.cut_short();
    leave_queue();
  }

 private:
  // It is the one that the policy chose, too.
  bool keep_place() {
    if (wanted.pick != nullptr) wanted.pick->policy = routing::kByProgram;
    return true;
  }

  dispatch::Turn turn_;
  dispatch::Place place_;
  Stage<Has, kDestination> has_;
};

// One that could not answer it. It may come back there unless another one answers.
struct Departure {
  std::string deployment;
  std::shared_ptr<dispatch::Dispatcher> dispatcher;
};

}  // namespace penstock::proxy
