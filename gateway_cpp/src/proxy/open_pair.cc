#include "proxy/open_pair.h"

#include <utility>

namespace penstock::proxy {

OpenPair::OpenPair(std::shared_ptr<const ShadowSample> sample,
                   std::shared_ptr<const routing::ShadowRule> rule, admission::ShadowBook& book,
                   control_plane::ShadowSink& sink)
    : sample_(std::move(sample)), rule_(std::move(rule)), book_(book), sink_(sink) {}

void OpenPair::answer(ShadowArm arm, v1::ShadowAnswer answer, KeptAnswer kept) {
  (arm == ShadowArm::kSelf ? again_ : candidate_) = std::move(answer);
  kept_.push_back(std::move(kept));
}

void OpenPair::lack(ShadowArm arm, admission::ShadowOutcome why) {
  if (arm == ShadowArm::kSelf) return;
  is_void_ = true;
  book_.count(rule_->uid, rule_->name, why);
}

void OpenPair::end() {
  if (--copies_ > 0 || !candidate_) return;
  v1::ShadowPair pair = sample_->pair;
  pair.set_rule(rule_->uid);
  *pair.mutable_candidate() = *std::move(candidate_);
  if (again_) *pair.mutable_again() = *std::move(again_);
  sink_.offer(std::move(pair), sample_->body);
}

}  // namespace penstock::proxy
