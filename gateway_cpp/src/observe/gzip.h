// Packs bodies as `Content-Encoding: gzip` says.
#pragma once

#include <string>
#include <string_view>

namespace penstock::observe {

std::string gzipped(std::string_view text);

}  // namespace penstock::observe
