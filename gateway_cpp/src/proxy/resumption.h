// What is known of an answer that broke, and goes on at another replica or is to. Of nearly all
// requests there is none.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "proxy/resume_rule.h"
#include "upstream/call_event.h"

namespace penstock::proxy {

struct Resumption {
  unsigned count = 0;       // how often it was to go on
  unsigned moved = 0;       // of these, how often only since its replica leaves
  unsigned resumed = 0;     // how often it did go on
  unsigned attempts = 0;    // calls for that
  std::string from;         // the replicas where it was until then, in their order: "r1, r2"
  bool was_broken = false;  // and not only handed over
  upstream::Usage paid;     // for its calls so far
  upstream::Usage seen;     // of it, by then
  upstream::Head head;      // as its client was told it

  // ---- of the last time
  base::ResumeReason reason = base::ResumeReason::kLost;
  GoesOn goes_on;
  base::Error cause;  // that its client is told where nobody goes on with it
  base::SteadyTime since;
  uint64_t tokens = 0;  // that its client has
  bool pauses = false;  // nothing of the rest has come yet
  bool anew = false;    // its client has nothing of it: it begins once more
};

}  // namespace penstock::proxy
