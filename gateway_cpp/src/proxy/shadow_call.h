// One call for our own sake: it waits for a place that nobody needs, gives it up as soon as a
// client does, and costs no tenant anything. Its I/O thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "admission/shadow_book.h"
#include "admission/shadow_class.h"
#include "admission/suspects.h"
#include "admission/usage_book.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "control_plane/shadow_sink.h"
#include "dialects/stream_end.h"
#include "dispatch/dispatchers.h"
#include "dispatch/shadow_place.h"
#include "openai/request.h"
#include "proxy/account.h"
#include "proxy/failover.h"
#include "proxy/kept_answer.h"
#include "proxy/parts.h"
#include "proxy/wake_up.h"
#include "routing/elsewhere.h"
#include "routing/route_table.h"
#include "runtime/awaitable.h"
#include "runtime/body_budget.h"
#include "runtime/payload.h"
#include "runtime/signal.h"
#include "runtime/timer_wheel.h"
#include "upstream/large_body.h"
#include "upstream/upstream.h"

namespace penstock::proxy {

// Whose words a call brings, and whether their request ruled out that others answer it.
struct ShadowSubject {
  const admission::Tenant& tenant;
  bool may_degrade = true;
};

// Where a call for the deployment goes ("name@version"; empty: its base model), or why nowhere.
std::variant<routing::Route, admission::ShadowOutcome> shadow_way(const routing::Routes& routes,
                                                                  const std::string& deployment,
                                                                  const std::string& adapter,
                                                                  const ShadowSubject& subject,
                                                                  const routing::Needs& needs);

// What is asked, of whom, for which rule. `endpoint` and `request` outlive the call.
struct ShadowErrand {
  std::shared_ptr<const routing::ShadowRule> rule;
  routing::Route route;
  const openai::Endpoint* endpoint = nullptr;
  const openai::Request* request = nullptr;
  upstream::SharedBody body;
  std::string request_id;
  std::string cache_salt;
};

class ShadowCall {
 public:
  ShadowCall(const ThreadParts& parts, ShadowErrand errand);
  ShadowCall(const ShadowCall&) = delete;
  ShadowCall& operator=(const ShadowCall&) = delete;
  ~ShadowCall();

  // Why there is no answer; nothing: there is one, be it an error.
  using Gone = std::optional<admission::ShadowOutcome>;
  runtime::Awaitable<Gone> run();
  // It ends without a word.
  void stop();
  // Once it has run and there is one.
  v1::ShadowAnswer answer();
  // What its bytes hold of the budget for that.
  KeptAnswer take_kept() { return std::move(answer_); }
  // Nobody needs wait for what is left of it.
  void leave();

 private:
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
  bool is_streamed() const { return errand_.request->form == openai::AnswerForm::kStream; }
  bool is_large() const { return errand_.body->size() > upstream::kLargeBodyBytes; }
  const routing::DeploymentRoute& deployment() const { return *errand_.route.deployment; }
  std::string fault() const;
  uint32_t status() const;
  upstream::CallRequest call_request() const;
  uint32_t since_begun(base::SteadyTime then) const;

  const ThreadParts& parts_;
  const ShadowErrand errand_;
  const base::SteadyTime begun_;
  runtime::Signal signal_;
  runtime::TimerWheel::Timer patience_;  // for a place, then for its answer
  runtime::TimerWheel::Timer again_;
  const std::shared_ptr<WakeUp> waker_;
  bool stopped_ = false;

  std::shared_ptr<dispatch::Dispatcher> dispatcher_;
  std::shared_ptr<Account> account_;
  admission::DayAsk ask_;  // what it may take of limits of a day
  dispatch::PlaceRequest wanted_;
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
