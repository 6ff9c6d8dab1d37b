// Whether what a client has is the beginning of the answer that is to go on. Pure.
#pragma once

#include <optional>

#include "penstock/v1/inference.pb.h"
#include "simulated/request.h"

namespace penstock::replica::simulated {

// Why the request's `Resume` fits no answer to it; none: it does, or there is none. What fits is
// what this engine says itself, group for group, so that a wrong answer cannot come of it.
std::optional<v1::ErrorDetail> misfit(const v1::CallRequest& request, const Ask& ask);

}  // namespace penstock::replica::simulated
