// What the comparer asks about pairs, of the deployments that their rule names for that: each
// question is a call of no one's, as a copy is, and is replied to. Of one I/O thread; its thread
// only.
#pragma once

#include <exception>
#include <memory>
#include <unordered_map>
#include <variant>

#include "admission/tenants.h"
#include "openai/request.h"
#include "proxy/shadow_call.h"

namespace penstock::proxy {

class ShadowQuestions {
 public:
  explicit ShadowQuestions(const ThreadParts& parts);
  ShadowQuestions(const ShadowQuestions&) = delete;
  ShadowQuestions& operator=(const ShadowQuestions&) = delete;
  ~ShadowQuestions();

  // Replies now or later, unless it is stopped by then.
  void ask(const v1::ShadowQuestion& question);
  // All end without a reply, and none begins.
  void stop();
  size_t size() const { return asked_.size(); }

 private:
  class Asked;
  using Made = std::variant<std::unique_ptr<Asked>, admission::ShadowOutcome>;

  Made make(const v1::ShadowQuestion& question);
  std::variant<routing::Route, admission::ShadowOutcome> way(const routing::ShadowRule& rule,
                                                             const v1::ShadowQuestion& question);
  std::shared_ptr<const routing::ShadowRule> rule_of(const std::string& uid) const;
  void start(std::unique_ptr<Asked> made);
  void end(const Asked* asked, const std::exception_ptr& broken);

  const ThreadParts& parts_;
  bool stopped_ = false;
  std::unordered_map<const Asked*, std::unique_ptr<Asked>> asked_;
};

}  // namespace penstock::proxy
