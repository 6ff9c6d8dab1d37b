// Small files that are named on the command line: the cluster's token, certificates.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"

namespace penstock::base {

// The whole file; nothing if it cannot be read or is larger than a mebibyte.
std::optional<std::string> read_file(const std::string& path);

// The file without the white space around its text. An error says what the file is not: private,
// which a file that others than its owner can use is not, or one line of text for a header.
Result<std::string> read_token(const std::string& path);

}  // namespace penstock::base
