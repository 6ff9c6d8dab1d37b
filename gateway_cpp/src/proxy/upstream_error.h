// What a replica or the way to it says went wrong, as the gateway's own error.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "penstock/v1/common.pb.h"
#include "upstream/call_event.h"

namespace penstock::proxy {

base::Error to_error(const v1::ErrorDetail& detail);

// Why an answer that came to its end is not a whole one. `wanted`, `digest`: of the adapter that
// was asked for; empty: none.
std::optional<base::Error> fault_of(const upstream::Finished& outcome, const std::string& wanted,
                                    std::string_view digest);

}  // namespace penstock::proxy
