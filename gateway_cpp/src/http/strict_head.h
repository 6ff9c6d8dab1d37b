// Is the head of an HTTP/1 request beyond doubt? Two readers that disagree on where a request ends
// let one user speak in another's name, so whatever could be read in two ways is refused. A pure
// function over the bytes up to and including the empty line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock::http {

// What is wrong, for a person; nothing if all is well.
std::optional<std::string> find_fault(std::string_view head);

}  // namespace penstock::http
