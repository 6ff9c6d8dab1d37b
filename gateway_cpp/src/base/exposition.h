// Writes a page of metrics, one family after the other, in one of the two formats that Prometheus
// reads. Made for pages of megabytes: each sample is appended in place.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/metric_table.h"
#include "base/metrics_values.h"
#include "base/request_times.h"

namespace penstock::base {

enum class TextFormat : std::uint8_t {
  kPrometheus,   // 0.0.4
  kOpenMetrics,  // 1.0.0: the same, with exemplars
};

// `name="value"`, as it stands between braces.
std::string label(std::string_view name, std::string_view value);

// A histogram summed over shards.
struct HistogramSum {
  std::array<std::uint64_t, Histogram::kMostBuckets> counts{};
  std::uint64_t sum_ns = 0;
  std::uint64_t observed = 0;
  Bounds bounds;
  Exemplars exemplars{};

  void add(const Histogram& histogram);
  void add(const TracedHistogram& histogram);  // of two exemplars of a bucket, the newer
};

class Exposition {
 public:
  explicit Exposition(TextFormat format) : format_(format) {}

  // What samples belong to from here on.
  void family(const Metric& metric);

  template <std::integral Number>
  void sample(std::string_view labels, Number value, std::string_view suffix = "") {
    begin(labels, suffix);
    append(value);
    out_ += '\n';
  }
  void sample(std::string_view labels, double value, std::string_view suffix = "") {
    begin(labels, suffix);
    append(value);
    out_ += '\n';
  }
  void histogram(std::string_view labels, const HistogramSum& sum);

  std::string take();

 private:
  void begin(std::string_view labels, std::string_view suffix);
  template <class Number>
  void append(Number value) {
    std::array<char, 32> text{};
    char* const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    out_.append(text.data(), end);
  }
  void note_bounds(Bounds bounds);
  void exemplar(const Exemplar& last);

  const TextFormat format_;
  std::string name_;
  std::string out_;
  std::vector<std::string> buckets_;  // of the family: `,le="0.1"} ` for each bound
};

}  // namespace penstock::base
