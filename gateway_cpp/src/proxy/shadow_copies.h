// Requests that are repeated for our own sake, of one I/O thread: which are sampled, and the copies
// that are under way, each owned here from its beginning to its end. Its thread only.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <unordered_map>
#include <variant>

#include "admission/shadow_book.h"
#include "admission/shadow_class.h"
#include "admission/suspects.h"
#include "admission/usage_book.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "control_plane/shadow_sink.h"
#include "dispatch/dispatchers.h"
#include "proxy/open_pair.h"
#include "proxy/shadow_sample.h"
#include "routing/elsewhere.h"
#include "routing/route_table.h"
#include "runtime/awaitable.h"
#include "runtime/body_budget.h"
#include "runtime/timer_wheel.h"
#include "upstream/upstream.h"

namespace penstock::proxy {

class ShadowCopy;

// What tells requests apart that are looked at.
struct ShadowLook {
  admission::ShadowAsk ask;
  const routing::Route& named;
  const std::shared_ptr<const admission::Tenant>& tenant;
  const openai::Endpoint& endpoint;
  bool may_degrade = true;
  bool has_tools = false;
  size_t body_bytes = 0;
};

class ShadowCopies {
 public:
  // All outlive the copies.
  struct Parts {
    const base::Clock& clock;
    base::Log& log;
    const base::GatewayConfig& config;
    runtime::TimerWheel& timers;
    routing::RouteReader& routes;
    dispatch::DispatchReader& dispatchers;
    admission::UsageBook& usage;
    upstream::Upstream& upstream;
    admission::Suspects& suspects;
    admission::ShadowBook& book;
    runtime::BodyBudget& budget;  // of bodies and answers that are kept
    control_plane::ShadowSink& sink;
    runtime::Executor io;  // of the thread
  };

  explicit ShadowCopies(const Parts& parts);
  ShadowCopies(const ShadowCopies&) = delete;
  ShadowCopies& operator=(const ShadowCopies&) = delete;
  ~ShadowCopies();

  // What its request fills in; null: no rule samples it, or none has it repeated.
  std::unique_ptr<ShadowSample> sample(const ShadowLook& look);
  // The request has settled.
  void begin(std::unique_ptr<ShadowSample> sample);
  // It may be what engines die of: nothing is repeated.
  void drop(const ShadowSample& sample);
  // All end, and none begins.
  void stop();
  size_t size() const { return copies_.size(); }

  // Where the rule has it answered, or why not.
  std::variant<routing::Route, admission::ShadowOutcome> way_of(const routing::ShadowRule& rule,
                                                                const admission::Tenant& tenant,
                                                                bool may_degrade,
                                                                const routing::Needs& needs) const;

 private:
  std::optional<admission::ShadowOutcome> stands_against(const routing::ShadowRule& rule,
                                                         const ShadowLook& look) const;
  std::shared_ptr<const routing::ShadowRule> still(const ShadowSample& sample,
                                                   const std::string& uid) const;
  // Nobody is asked: the request and its answer are all there is to be handed over.
  void record(const ShadowSample& sample, const routing::ShadowRule& rule);
  ShadowCopy* make(const std::shared_ptr<OpenPair>& pair, ShadowArm arm);
  void start(ShadowCopy* copy);
  void end(ShadowCopy* copy, const std::exception_ptr& broken);

  const Parts parts_;
  bool stopped_ = false;
  std::unordered_map<const ShadowCopy*, std::unique_ptr<ShadowCopy>> copies_;
};

}  // namespace penstock::proxy
