#include "http/metrics_format.h"

#include <algorithm>
#include <charconv>

#include "http/syntax.h"

namespace penstock::http {
namespace {

// One range of an Accept: "text/plain;version=0.0.4;q=0.5".
struct Range {
  std::string_view type;
  double weight = 1;
};

// What is no number from 0 to 1 is as if it were not there (RFC 9110, 12.4.2 knows no such).
void take_parameter(std::string_view parameter, Range& range) {
  if (parameter.size() < 3 || lower(parameter[0]) != 'q' || parameter[1] != '=') return;
  parameter.remove_prefix(2);
  double weight = 0;
  const auto read = std::from_chars(parameter.data(), parameter.data() + parameter.size(), weight);
  if (read.ec == std::errc() && weight >= 0 && weight <= 1) range.weight = weight;
}

Range range_of(std::string_view element) {
  Range range;
  std::size_t end = element.find(';');
  range.type = trim(element.substr(0, end));
  while (end != std::string_view::npos) {
    element.remove_prefix(end + 1);
    end = element.find(';');
    take_parameter(trim(element.substr(0, end)), range);
  }
  return range;
}

}  // namespace

base::TextFormat metrics_format(std::string_view accept) {
  double open = 0;
  double plain = 0;
  each_element(accept, [&](std::string_view element) {
    const Range range = range_of(element);
    if (same_text(range.type, "application/openmetrics-text")) open = std::max(open, range.weight);
    if (same_text(range.type, "text/plain")) plain = std::max(plain, range.weight);
  });
  return open > 0 && open >= plain ? base::TextFormat::kOpenMetrics : base::TextFormat::kPrometheus;
}

std::string_view content_type(base::TextFormat format) {
  return format == base::TextFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace penstock::http
