// What one rule makes of a sampled request: its client's answer beside those to the copies that
// were begun. Handed over as one pair once all of these have ended. A copy that came to nothing
// leaves its part out; without the candidate's there is nothing to compare. Its I/O thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "admission/shadow_book.h"
#include "control_plane/shadow_sink.h"
#include "proxy/kept_answer.h"
#include "proxy/shadow_sample.h"

namespace penstock::proxy {

// Who is asked by a copy.
enum class ShadowArm : uint8_t {
  kCandidate,
  kSelf,  // the primary, again
};

class OpenPair {
 public:
  // `book` and `sink` outlive it.
  OpenPair(std::shared_ptr<const ShadowSample> sample,
           std::shared_ptr<const routing::ShadowRule> rule, admission::ShadowBook& book,
           control_plane::ShadowSink& sink);

  const ShadowSample& sample() const { return *sample_; }
  const routing::ShadowRule& rule() const { return *rule_; }
  std::shared_ptr<const routing::ShadowRule> shared_rule() const { return rule_; }

  // One more copy, until end().
  void begin() { ++copies_; }
  // The primary is asked again once the candidate has answered: there was no room for both.
  void owe_again() { owes_again_ = true; }
  // Whether that is due now; said once.
  bool is_again_due() { return candidate_ && std::exchange(owes_again_, false); }
  // `kept`: what its bytes hold of the budget for that.
  void answer(ShadowArm arm, v1::ShadowAnswer answer, KeptAnswer kept);
  // It came to nothing, which is the outcome of the request where the candidate's did.
  void lack(ShadowArm arm, admission::ShadowOutcome why);
  // Nothing will come of it.
  bool is_void() const { return is_void_; }
  // The last one hands the pair over.
  void end();

 private:
  const std::shared_ptr<const ShadowSample> sample_;
  const std::shared_ptr<const routing::ShadowRule> rule_;
  admission::ShadowBook& book_;
  control_plane::ShadowSink& sink_;
  size_t copies_ = 0;
  bool is_void_ = false;
  bool owes_again_ = false;
  std::optional<v1::ShadowAnswer> candidate_;
  std::optional<v1::ShadowAnswer> again_;
  std::vector<KeptAnswer> kept_;
};

}  // namespace penstock::proxy
