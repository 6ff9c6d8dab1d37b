// Small pure functions over HTTP's text, shared by the client's and the server's readers.
#pragma once

#include <string_view>

namespace penstock::evals {

// Cuts the first CRLF-ended line off `text` and returns it; the last line needs no CRLF.
std::string_view next_line(std::string_view& text);

std::string_view trimmed(std::string_view text);

bool same_ignoring_case(std::string_view left, std::string_view right);

}  // namespace penstock::evals
