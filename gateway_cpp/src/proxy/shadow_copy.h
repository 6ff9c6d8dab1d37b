// One request once more, for our own sake: to the candidate of a rule or to its primary again. It
// waits for a place that nobody needs, gives it up as soon as a client does, and costs no tenant
// anything. Owned by ShadowCopies; its I/O thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "dialects/stream_end.h"
#include "dispatch/shadow_place.h"
#include "proxy/account.h"
#include "proxy/failover.h"
#include "proxy/kept_answer.h"
#include "proxy/shadow_copies.h"
#include "proxy/wake_up.h"
#include "runtime/payload.h"
#include "runtime/signal.h"

namespace penstock::proxy {

class ShadowCopy {
 public:
  ShadowCopy(const ShadowCopies::Parts& parts, ShadowCopies& copies, std::shared_ptr<OpenPair> pair,
             ShadowArm arm);
  ShadowCopy(const ShadowCopy&) = delete;
  ShadowCopy& operator=(const ShadowCopy&) = delete;
  ~ShadowCopy();

  runtime::Awaitable<void> run();
  // It ends without a word.
  void stop();
  // That it belongs to.
  std::shared_ptr<OpenPair> pair() const { return pair_; }

 private:
  // Why there is no answer; nothing: there is one, be it an error.
  using Gone = std::optional<admission::ShadowOutcome>;

  runtime::Awaitable<Gone> repeat();
  Gone enter();
  bool reserve();
  bool is_suspect() const;
  admission::Fingerprint fingerprint() const;
  void suspect() const;
  runtime::Awaitable<Gone> find_place();
  Gone absent();
  void open();
  runtime::Awaitable<Gone> hear_out();
  void take_news();
  bool is_tried_again();
  std::string fault() const;
  uint32_t status() const;
  upstream::CallRequest call_request() const;
  void leave();
  v1::ShadowAnswer answer();
  uint32_t since_begun(base::SteadyTime then) const;

  const ShadowCopies::Parts& parts_;
  ShadowCopies& copies_;
  const std::shared_ptr<OpenPair> pair_;
  const ShadowSample& sample_;
  const routing::ShadowRule& rule_;
  const ShadowArm arm_;
  const base::SteadyTime begun_;
  const std::string request_id_;
  const std::string cache_salt_;
  runtime::Signal signal_;
  runtime::TimerWheel::Timer patience_;  // for a place, then for its answer
  runtime::TimerWheel::Timer again_;
  const std::shared_ptr<WakeUp> waker_;
  bool stopped_ = false;

  routing::Route route_;
  std::shared_ptr<dispatch::Dispatcher> dispatcher_;
  std::shared_ptr<Account> account_;
  admission::DayAsk ask_;  // what it may take of limits of a day
  dispatch::Ask wanted_;
  Failover failover_;
  dispatch::ShadowPlace place_;
  std::string replica_id_;                // that it was sent to last
  std::unique_ptr<upstream::Call> call_;  // null: it was never sent
  base::SteadyTime sent_;
  base::SteadyTime first_;  // when its first byte came
  runtime::Payload payload_;
  KeptAnswer answer_;
  dialects::StreamEnd end_;
  bool is_late_ = false;  // it was not answered in time
};

}  // namespace penstock::proxy
