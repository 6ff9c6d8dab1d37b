// One try of a request: where it went, its call, and what it was told there. A request makes one
// after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "proxy/failover.h"
#include "proxy/stage.h"
#include "routing/replica_set.h"
#include "upstream/call.h"

namespace penstock::proxy {

// What a request may be sent to.
struct Target {
  explicit Target(std::shared_ptr<routing::Replica> to)
      : id(to->id().value), address(to->address()), replica(std::move(to)) {}

  std::string id;                             // as logs and headers name it
  std::string address;                        // host:port of its Inference service
  std::shared_ptr<routing::Replica> replica;  // that stands behind it
};

enum class Try : uint8_t {
  kSent,      // nobody has seen anything of an answer
  kAnswers,   // what comes is the client's
  kAnswered,  // all of it is with the client
};

inline constexpr Transitions<Try> kAttempt{
    {Try::kSent, {Try::kAnswers}},
    {Try::kAnswers, {Try::kAnswered}},
};

class Attempt {
 public:
  Attempt(Target target, std::unique_ptr<upstream::Call> call, uint32_t config)
      : call_(std::move(call)), config_(config), target_(std::move(target)) {}

  upstream::Call& call() const { return *call_; }
  const Target& target() const { return target_; }
  // Destination::config() of where it is.
  uint32_t config() const { return config_; }
  Try state() const { return state_.now(); }
  bool refused() const { return state_.refused(); }
  // Its replica has said something.
  bool has_news() const { return call_->has_head() || call_->has_bytes() || call_->ended(); }
  // Likewise, of its answer or its end.
  bool has_event() const { return call_->has_bytes() || call_->ended(); }

  void answers() { state_.advance(Try::kAnswers); }
  void answered() { state_.advance(Try::kAnswered); }

 private:
  std::unique_ptr<upstream::Call> call_;
  Stage<Try, kAttempt> state_;
  uint32_t config_;
  Target target_;
};

// All of a request's, and what they say of where it may go next.
class Attempts {
 public:
  bool is_under_way() const { return now_.has_value(); }
  Attempt& now() { return *now_; }  // while one is
  const Attempt& now() const { return *now_; }
  upstream::Call& call() const { return now_->call(); }
  // What the last one with this deployment failed with.
  const std::optional<base::Error>& last() const { return last_; }
  const Failover& failover() const { return failover_; }
  bool refused() const { return refused_ || (now_ && now_->refused()); }

  // It goes to the target, whose call begins.
  void sent_to(const Target& target) { failover_.sent_to({target.id}); }
  void begin(Target target, std::unique_ptr<upstream::Call> call, uint32_t config = 0) {
    now_.emplace(std::move(target), std::move(call), config);
  }
  // The call of the one under way has failed.
  Next after(const upstream::CallFailure& failure, bool has_engine) {
    return failover_.after(failure, has_engine);
  }
  // The answer of the last one broke, and is to go on at another.
  void goes_on() { failover_.goes_on(); }
  // The one under way was in vain, and another may follow.
  void close(base::Error why) {
    failed(std::move(why));
    drop();
  }
  // Likewise, and none may.
  void failed(base::Error why) { last_ = std::move(why); }
  // It is called back: it may go there again.
  void recall() {
    drop();
    failover_.recalled();
  }
  // Nobody wants what comes of the one under way.
  void drop() {
    refused_ = refused();
    now_.reset();
  }
  // An engine died that worked for it, as if it had gone there itself.
  void died_at(const routing::ReplicaId& replica, const upstream::CallFailure& failure) {
    failover_.sent_to(replica);
    failover_.after(failure);
  }
  // To another deployment.
  void leave() {
    drop();
    last_.reset();
    failover_.elsewhere();
  }

 private:
  std::optional<Attempt> now_;
  bool refused_ = false;  // a step, of one that is gone
  std::optional<base::Error> last_;
  Failover failover_;
};

}  // namespace penstock::proxy
