// A v1::CallEvent of the usual kinds, read where it lies.
#pragma once

#include <string_view>

#include "upstream/call_event.h"

namespace penstock::upstream {

// False: there is more to it than head, chunk and outcome, or it is not quite as protobuf would
// write it. Then `event` and `rest` mean nothing. `rest` is where the parts go.
bool read_event(std::string_view bytes, CallEvent& event, CallEvent::Rest& rest);

}  // namespace penstock::upstream
