// The usage book in the words of a report to the head, and of its replies.
#pragma once

#include "admission/usage_book.h"
#include "penstock/v1/routes.pb.h"

namespace penstock::control_plane {

// What is counted meanwhile is in the rows, and held a little longer.
void add_usage(admission::UsageBook& book, penstock::v1::GatewayReport& report);

// An older head's reply tells nothing.
void hear_usage(const penstock::v1::GatewayReportReply& reply, admission::UsageBook& book);

}  // namespace penstock::control_plane
