// The calls of one session, and which of them have something to send: what frames are made of.
// Knows nothing of gRPC. Any thread may call anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "call.h"
#include "penstock/v1/inference.pb.h"

namespace penstock::replica {

class Outbox {
 public:
  static constexpr size_t kFrameBytes = 256 << 10;
  // Counted for each event beside its body, so that frames of tiny events are bounded, too.
  static constexpr size_t kEventOverheadBytes = 32;

  // What `fill` found out beside the frame.
  struct Filled {
    std::vector<CallPtr> room;   // producers that may go on
    std::vector<CallPtr> ended;  // calls that this frame ends; no longer known here
    size_t largest_body = 0;

    void clear();
  };

  // False if the id is in use.
  bool add(const CallPtr& call);
  CallPtr find(uint64_t id) const;
  // Forgets the call and returns it; null if it is not known.
  CallPtr remove(uint64_t id);
  // Forgets and returns all calls.
  std::vector<CallPtr> remove_all();
  bool empty() const;

  // True if the list was empty: then the caller has to see to a `fill`.
  bool ready(const CallPtr& call);
  // Moves what is ready into `frame`, at most one event for each call; what does not fit stays
  // listed. False if there was nothing.
  bool fill(v1::ServerFrame* frame, Filled* filled);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, CallPtr> calls_;
  std::vector<CallPtr> ready_;
  std::vector<CallPtr> spare_;  // the memory of the list that was sent last
};

}  // namespace penstock::replica
