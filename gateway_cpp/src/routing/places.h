// Whether a replica has a free place for one more call of this gateway. Pure: several gateways that
// share a replica decide alike, each with its own counts and the replica's newest report.
#pragma once

#include <cstdint>

namespace penstock::routing {

struct Places {
  std::uint32_t limit = 0;      // calls of all gateways together; 0: no limit
  std::uint32_t own = 0;        // calls of this gateway under way there
  std::uint32_t unseen = 0;     // of these, sent since the replica's newest report
  std::uint32_t elsewhere = 0;  // calls of other gateways, by that report
  std::uint32_t gateways = 1;   // that share it, this one included
  bool engine_full = false;     // sequences wait in the engine for a slot of its batch
};

// A gateway is never refused a first call. Below its fair share, floor(limit / gateways), it takes
// any place that is left. Beyond it, a place has to be left when each other gateway has sent as
// many unseen calls as this one, and at least one: so sends that race between two reports do not
// overfill, and what ends goes to those that have less than their share. An engine whose own queue
// is not empty gets no second call.
//
// However late reports come, gateways together keep below the limit and a share of each other one
// that takes up its own before it hears that the places are taken. Where reports come between
// their sends it is the limit, and a first call of each other one.
bool has_place(const Places& places);

}  // namespace penstock::routing
