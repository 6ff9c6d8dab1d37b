// One request once more, for our own sake: to the candidate of a rule or to its primary again.
// Owned by ShadowCopies; its I/O thread only.
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "proxy/open_pair.h"
#include "proxy/shadow_call.h"

namespace penstock::proxy {

class ShadowCopy {
 public:
  ShadowCopy(const ThreadParts& parts, std::shared_ptr<OpenPair> pair, ShadowArm arm)
      : parts_(parts), pair_(std::move(pair)), arm_(arm) {}
  ShadowCopy(const ShadowCopy&) = delete;
  ShadowCopy& operator=(const ShadowCopy&) = delete;
  ~ShadowCopy() { parts_.shadow_book.end(pair_->rule()); }

  runtime::Awaitable<void> run();
  // It ends without a word.
  void stop();
  // That it belongs to.
  std::shared_ptr<OpenPair> pair() const { return pair_; }

 private:
  std::variant<routing::Route, admission::ShadowOutcome> way() const;
  ShadowErrand errand(routing::Route route) const;

  const ThreadParts& parts_;
  const std::shared_ptr<OpenPair> pair_;
  const ShadowArm arm_;
  bool stopped_ = false;
  std::optional<ShadowCall> call_;  // nothing: it has not begun
};

}  // namespace penstock::proxy
