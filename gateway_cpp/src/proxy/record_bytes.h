// A request's record as the bytes of a v1::RequestRecord, and what is told beside them.
#pragma once

#include <string>
#include <string_view>

#include "observe/record_sink.h"
#include "proxy/decision.h"

namespace penstock::proxy {

// Of one that is settled. They are written into `room`, which grows as need be, and hold until
// another is written there.
std::string_view write_record(const RequestRecord& record, std::string& room);
observe::RecordFacts facts_of(const RequestRecord& record);

}  // namespace penstock::proxy
