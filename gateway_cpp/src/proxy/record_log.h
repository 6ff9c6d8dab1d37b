// The fields of a request's log line: one table, from which the line is made and the reference page
// (docs/reference/request_record.md).
#pragma once

#include <string>

#include "base/log.h"
#include "proxy/decision.h"

namespace penstock::proxy {

// Of one that is settled.
void log_record(const RequestRecord& record, base::Log& log);

// The table in Markdown.
std::string log_field_table();

}  // namespace penstock::proxy
