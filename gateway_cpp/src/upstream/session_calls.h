// The calls of one session by their ids, and what a replica's frames do to them: what it sends is
// foreign, whatever its ids, order and sizes. Knows no sockets and no coroutines; one I/O thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "penstock/v1/inference.pb.h"
#include "upstream/call.h"
#include "upstream/frame_reader.h"

namespace penstock::upstream {

class SessionCalls {
 public:
  SessionCalls() = default;
  SessionCalls(const SessionCalls&) = delete;
  SessionCalls& operator=(const SessionCalls&) = delete;
  // What cancelled calls hold is charged as far as it was seen.
  ~SessionCalls();

  size_t size() const { return calls_.size(); }
  // Cancelled ones that the replica has not answered yet.
  size_t cancelled() const { return cancelled_.size(); }

  void add(Call& call) { calls_.emplace(call.id(), &call); }
  // Its owner has no use for it any more. What is held for it stays until the replica has answered
  // the cancel. False: it was over already.
  bool remove(Call& call);

  // Takes a frame; false: it is none.
  bool take_in(std::string_view message);
  // The load that the last frame told; null: none.
  const v1::Load* load() const { return frame_.load(); }
  // Lets go of what is held for cancelled calls that a replica has not answered for so many calls
  // of this: it never will.
  void give_up_unanswered(unsigned rounds);
  // All end: failure_of(call id) says why.
  template <class FailureOf>
  void fail_all(const FailureOf& failure_of) {
    drop_cancelled(Held::Silence::kLost);
    for (const auto& [id, call] : std::exchange(calls_, {})) {
      if (call->fail(failure_of(id))) list(*call);
    }
  }
  bool has_listed() const { return !to_wake_.empty(); }
  // Hands every call that has news to wake(Call&), once. Whoever is woken may add and remove calls,
  // listed ones included.
  template <class Wake>
  void wake_listed(const Wake& wake) {
    for (size_t i = 0; i < to_wake_.size(); ++i) {
      if (to_wake_[i] == nullptr) continue;
      to_wake_[i]->listed = false;
      wake(*to_wake_[i]);
    }
    to_wake_.clear();
  }

 private:
  struct Cancelled {
    Held held;
    unsigned rounds = 0;  // that it has waited
  };

  void drop_cancelled(Held::Silence silence);
  void deliver(const CallEvent& event);
  void settle_cancelled(const CallEvent& event);
  void list(Call& call);

  std::unordered_map<uint64_t, Call*> calls_;
  std::unordered_map<uint64_t, Cancelled> cancelled_;
  std::vector<Call*> to_wake_;  // null: removed in the meantime
  FrameReader frame_;
};

}  // namespace penstock::upstream
