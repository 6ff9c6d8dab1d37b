// The usage book in the words of a report to the head, and of its replies.
#pragma once

#include <span>

#include "admission/usage_book.h"
#include "penstock/v1/routes.pb.h"

namespace penstock::control_plane {

void add_usage(std::span<const admission::UsageRow> rows, penstock::v1::GatewayReport& report);

// An older head's reply tells nothing.
void hear_day(const penstock::v1::GatewayReportReply& reply, admission::DayLedger& day);

}  // namespace penstock::control_plane
