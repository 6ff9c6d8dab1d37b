// Requests that are repeated for our own sake, of one I/O thread: which are sampled, and the copies
// that are under way, each owned here from its beginning to its end. Its thread only.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>

#include "admission/shadow_book.h"
#include "admission/shadow_class.h"
#include "proxy/open_pair.h"
#include "proxy/shadow_call.h"
#include "proxy/shadow_sample.h"

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
  explicit ShadowCopies(const ThreadParts& parts);
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

 private:
  std::optional<admission::ShadowOutcome> stands_against(const routing::ShadowRule& rule,
                                                         const ShadowLook& look) const;
  std::shared_ptr<const routing::ShadowRule> still(const ShadowSample& sample,
                                                   const std::string& uid) const;
  // Nobody is asked: the request and its answer are all there is to be handed over.
  void record(const ShadowSample& sample, const routing::ShadowRule& rule);
  void begin(const std::shared_ptr<OpenPair>& pair, bool again);
  std::variant<ShadowCopy*, admission::ShadowOutcome> make(const std::shared_ptr<OpenPair>& pair,
                                                           ShadowArm arm);
  void start(ShadowCopy* copy);
  void end(ShadowCopy* copy, const std::exception_ptr& broken);
  void go_on(const std::shared_ptr<OpenPair>& pair);

  const ThreadParts& parts_;
  bool stopped_ = false;
  std::unordered_map<const ShadowCopy*, std::unique_ptr<ShadowCopy>> copies_;
};

}  // namespace penstock::proxy
