// Small files that are named on the command line: the cluster's token, certificates.
#pragma once

#include <optional>
#include <string>

namespace penstock::base {

// The whole file; nothing if it cannot be read or is larger than a mebibyte.
std::optional<std::string> read_file(const std::string& path);

// The file without the white space around its text; nothing if there is no other, or if it could
// not stand in a header.
std::optional<std::string> read_token(const std::string& path);

}  // namespace penstock::base
