// What a replica or the way to it says went wrong, as the gateway's own error.
#pragma once

#include "base/error.h"
#include "penstock/v1/common.pb.h"

namespace penstock::proxy {

base::Error to_error(const v1::ErrorDetail& detail);

}  // namespace penstock::proxy
