// What a session tells a client whose request it does not serve, before anything of it is read but
// its head.
#pragma once

#include <optional>
#include <string_view>

#include "base/error.h"
#include "http/strict_head.h"

namespace penstock::http {

// What x-penstock-metadata may say.
constexpr std::string_view kIncludeMetadata = "include";
// What x-penstock-degrade may say.
constexpr std::string_view kNeverDegrade = "never";
constexpr size_t kLongestCategory = 64;
constexpr std::string_view kAllowDegrade = "allow";

base::Error wrong_method(const RequestHead& head, std::string_view allow);
base::Error wrong_content_type(const RequestHead& head);
base::Error wrong_coding(const RequestHead& head);
// A header of our own with a value that none of its meanings has; none: all are well.
std::optional<base::Error> wrong_own_header(const RequestHead& head);
base::Error too_many_clients();
base::Error plain_http();
base::Error our_fault();

}  // namespace penstock::http
