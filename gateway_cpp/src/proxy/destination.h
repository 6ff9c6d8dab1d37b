// Where a request is: one deployment at a time, entered and left in one place (destination.cc) by
// whatever way it comes: its name, a canary, the way back from one, a rung.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "dispatch/dispatcher.h"
#include "proxy/account.h"
#include "routing/route_table.h"

namespace penstock::proxy {

// How a request came to where it is.
enum class Way : uint8_t {
  kNamed,     // its client asked for it
  kCanary,    // it is in the share of a canary of the one that was asked
  kReturned,  // its canary could not answer: the one that was asked is to
  kRung,      // of the ladder of the one that was asked
};

struct Destination {
  explicit Destination(std::shared_ptr<Account> payer) : account(std::move(payer)) {}

  Way way = Way::kNamed;
  routing::Route route;
  std::shared_ptr<dispatch::Dispatcher> dispatcher;  // the deployment's; null: not resolved
  std::shared_ptr<Account> account;                  // what it costs there; never null
  base::SteadyTime entered;                          // when its admission there began
};

// One that could not answer it. It may come back there unless another one answers.
struct Departure {
  std::string deployment;
  std::shared_ptr<dispatch::Dispatcher> dispatcher;
};

}  // namespace penstock::proxy
