// Which text of the metrics a caller wants, by its Accept.
#pragma once

#include <string_view>

#include "base/exposition.h"

namespace penstock::http {

// OpenMetrics for whoever prefers it to plain text, or likes it as much and names it.
base::TextFormat metrics_format(std::string_view accept);

std::string_view content_type(base::TextFormat format);

}  // namespace penstock::http
