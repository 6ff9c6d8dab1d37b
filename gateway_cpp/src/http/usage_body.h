// The body of /v1/usage, in the words of OpenAI's usage API. Pure.
#pragma once

#include <string>

#include "admission/day_ledger.h"
#include "admission/tenants.h"

namespace penstock::http {

std::string usage_body(const admission::Caller& caller, const admission::DayStanding& day,
                       const admission::RateState& rates);

}  // namespace penstock::http
