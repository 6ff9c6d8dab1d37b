// One replica as this gateway knows it: its route, our calls on it, what it reported last and what
// speaks against it. Owned by its ReplicaSet and by whoever has a call on it; only id(), address(),
// own_token() and word() may be read without the set's guard.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "routing/breaker.h"
#include "routing/hashing.h"
#include "routing/progress.h"
#include "routing/route_snapshot.h"
#include "routing/slow_start.h"
#include "routing/traits.h"

namespace penstock::routing {

// What follows from a replica's state; sums and pools are kept by the difference of two of these.
struct Standing {
  // First, since two that differ mostly do so in these.
  std::uint32_t load = 0;       // calls, ours and others'
  double score = 0;             // load for each place, smaller is better
  std::uint32_t continues = 0;  // number of its config_hash, if it is ready and resumes; else 0
  bool starting = false;
  bool ready = false;      // by the routes and by its own word
  bool sound = false;      // ready, and nothing speaks against it
  bool pressured = false;  // ready, with too much KV in use
  bool open = false;       // sound or to be probed, with room
  bool callable = false;   // may be chosen: open, and not kept for the prefill of others
  bool kept = false;       // open, and kept for that: for when no other one is left
  bool decoder = false;    // sound, and there to decode
  bool spare = false;      // doubted, with room: for when nobody is sound
  bool adapting = false;   // callable, and takes adapters
  bool slotted = false;    // ready, and reports slots for adapters
  bool operator==(const Standing&) const = default;
};

// Where a replica is near this gateway; smaller is nearer.
enum class Nearness : std::uint8_t { kSameNode, kSameZone, kElsewhere };

class Replica {
 public:
  Replica(ReplicaRoute route, std::uint32_t serial)
      : id_(route.id),
        address_(route.address),
        own_token_(route.own_token),
        id_hash_(hash_text(id_.value)),
        serial_(serial),
        route_(std::move(route)) {}
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  const ReplicaId& id() const { return id_; }
  const std::string& address() const { return address_; }
  // False: an older agent's, which asks its callers for the cluster's token.
  bool own_token() const { return own_token_.load(std::memory_order_relaxed); }
  // Stays when it has left the set.
  Word word() const { return word_.load(std::memory_order_relaxed); }
  std::uint64_t id_hash() const { return id_hash_; }
  const ReplicaRoute& route() const { return route_; }  // the newest
  std::uint32_t in_flight() const { return own_; }
  const LoadReport& reported() const { return reported_; }  // the newest; all zero before the first

  const Standing& standing() const { return standing_; }
  std::uint32_t revision() const { return revision_; }  // its set's number of it
  std::uint32_t config() const { return config_; }      // likewise, of its config_hash; 0: not told
  std::uint32_t serial() const { return serial_; }  // tells the replicas of one set apart for good
  std::uint32_t limit() const { return limit_; }    // calls of all gateways; 0: none
  std::uint32_t share_tenths() const { return slow_start_.tenths(); }
  Nearness nearness() const { return nearness_; }
  // It and this gateway are in one zone, which both name.
  bool in_zone() const { return in_zone_; }
  bool is_prefill() const { return route_.role == Role::kPrefill; }
  // Calls that it would take now, as far as this gateway knows.
  std::uint32_t places_left() const;
  // Of our calls, those that generate.
  std::uint32_t generating() const { return own_ - legs_; }
  // It was not sent so many answers to go on with since its newest report that those which run on
  // elsewhere would have to wait for one another here.
  bool takes_over() const;
  bool holds(std::string_view adapter) const;
  // As far as is known: before its first report any does.
  bool takes_adapters() const { return !has_reported_ || reported_.adapter_slots > 0; }

  // What the set's policy notes of it; means nothing to another policy.
  struct Note {
    std::size_t heap_at = SIZE_MAX;  // in a ReplicaHeap
    double pass = 0;                 // turns that it has had
    std::uint64_t chosen = 0;        // when it was chosen last, in choices
  };
  Note note = {};

 private:
  friend class ReplicaSet;
  friend class ReplicaList;

  // What its state means under these limits now. `decodes`: others are there to decode.
  Standing stands(const Limits& limits, base::SteadyTime now, bool decodes) const;
  bool has_room(const Limits& limits) const;
  bool has_memory_to_continue(const Limits& limits) const;
  std::uint32_t limit_by(const Limits& limits) const;

  const ReplicaId id_;
  const std::string address_;
  std::atomic<bool> own_token_;
  std::atomic<Word> word_ = Word::kNone;
  const std::uint64_t id_hash_;
  const std::uint32_t serial_;
  ReplicaRoute route_;
  std::uint32_t revision_ = 0;
  bool listed_ = false;  // in the set
  std::size_t member_at_ = 0;
  std::size_t pool_at_[4] = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX};  // in the set's pools
  Nearness nearness_ = Nearness::kElsewhere;
  bool in_zone_ = false;
  std::uint32_t limit_ = 0;
  Standing standing_ = {};

  std::uint32_t own_ = 0;        // our calls under way
  std::uint32_t legs_ = 0;       // of these, that move KV
  std::uint32_t unseen_ = 0;     // sent since the newest report
  std::uint32_t continued_ = 0;  // of these, that go on with answers of others
  std::uint32_t elsewhere_ = 0;  // other gateways' calls
  bool has_reported_ = false;
  LoadReport reported_ = {};
  std::uint32_t config_ = 0;
  bool preempts_ = false;  // by its newest report

  Breaker breaker_;
  Progress progress_;
  bool suspected_ = false;  // makes no progress
  bool silent_ = false;     // tells nothing
  bool leaves_ = false;     // the time has come to hand its streams over
  SlowStart slow_start_;
  base::SteadyTime wake_at_ = base::SteadyTime::max();
};

}  // namespace penstock::routing
