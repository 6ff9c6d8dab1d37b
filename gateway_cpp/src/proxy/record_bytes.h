// A request's record as the bytes of a v1::RequestRecord, and what is told beside them.
#pragma once

#include <string_view>

#include "observe/record_sink.h"
#include "observe/wire_writer.h"
#include "proxy/decision.h"

namespace penstock::proxy {

// Of one that is settled.
void write_record(const RequestRecord& record, observe::WireWriter& to);
observe::RecordFacts facts_of(const RequestRecord& record);

}  // namespace penstock::proxy
