// What a session tells a client whose request it does not serve, before anything of it is read but
// its head.
#pragma once

#include <string_view>

#include "base/error.h"
#include "http/strict_head.h"

namespace penstock::http {

base::Error wrong_method(const RequestHead& head, std::string_view allow);
base::Error wrong_content_type(const RequestHead& head);
base::Error wrong_coding(const RequestHead& head);
base::Error wrong_priority(const RequestHead& head);
base::Error too_many_clients();
base::Error plain_http();
base::Error our_fault();

}  // namespace penstock::http
