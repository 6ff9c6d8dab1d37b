// Whether an answer that broke goes on at another replica, and how. Pure: by what ended it, what
// its client has of it, and what became of the request before.
//
// What is no sign of the request's own doing holds it back from nothing. A crash may be its doing,
// the less so the longer its answer ran; after a second one it is tried apart from all others that
// may have done it, and what is proved to have done it goes nowhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/deployment_metrics.h"
#include "upstream/call.h"

namespace penstock::proxy {

using base::ResumeReason;

// What ended a call; nothing: another replica would end it likewise, or is not to try it.
std::optional<ResumeReason> resume_reason(const upstream::CallFailure& failure);

struct BrokenAnswer {
  ResumeReason reason = ResumeReason::kLost;
  bool resumable = false;    // another replica could go on with it, or its client has nothing of it
  uint64_t tokens = 0;       // that its client has
  unsigned crashes = 0;      // of engines, with the request aboard: this one included
  unsigned resumes = 0;      // that the request has had, after breaks
  bool was_suspect = false;  // it ran apart from others that engines may die of
  bool quarantined = false;  // by now
};

// A request is resumed no more often, whatever broke its answer. Where a replica leaves as it
// should it always moves: each leaves once.
inline constexpr unsigned kMostResumes = 2;
// An answer that ran so long is not what an engine dies of at once.
inline constexpr uint64_t kOldEnough = 32;  // tokens

struct GoesOn {
  enum class How : uint8_t {
    kAtOnce,
    kApart,  // where no other runs that engines may die of
    kNot,
  };
  How how = How::kNot;
  std::string_view why_not = {};  // for the log, static
  bool operator==(const GoesOn&) const = default;
};
GoesOn goes_on(const BrokenAnswer& answer);

}  // namespace penstock::proxy
