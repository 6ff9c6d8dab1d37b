// What an answer says of its request and of who answers it: the headers of its head, and what a
// stream tells of its own making.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "proxy/reply.h"

namespace penstock::proxy {

struct Exchange;

// What every answer of an endpoint says.
void add_beginning(AnswerHead& head, std::chrono::nanoseconds age, std::string_view trace_id);

// As far as it is known by now.
AnswerHead head_of(const Exchange& x, unsigned status, std::string_view content_type);

// The event that tells of a stream's making, which its client asked for.
std::string making_of(const Exchange& x);

}  // namespace penstock::proxy
