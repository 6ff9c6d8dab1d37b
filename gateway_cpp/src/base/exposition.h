// Writes Prometheus text, one family after the other. Made for pages of megabytes: each sample is
// appended in place.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/metrics_values.h"

namespace penstock::base {

// `name="value"`, as it stands between braces.
std::string label(std::string_view name, std::string_view value);

// A histogram summed over shards.
struct HistogramSum {
  std::array<std::uint64_t, Histogram::kMostBuckets> counts{};
  std::uint64_t sum_ns = 0;
  std::uint64_t observed = 0;
  Bounds bounds;

  void add(const Histogram& histogram);
};

class Exposition {
 public:
  // What samples belong to from here on; `name` without its prefix.
  void family(std::string_view name, std::string_view type, std::string_view help);

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

  std::string take() { return std::move(out_); }

 private:
  void begin(std::string_view labels, std::string_view suffix);
  template <class Number>
  void append(Number value) {
    std::array<char, 32> text{};
    char* const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    out_.append(text.data(), end);
  }
  void note_bounds(Bounds bounds);

  std::string name_;
  std::string out_;
  std::vector<std::string> buckets_;  // of the family: `,le="0.1"} ` for each bound
};

}  // namespace penstock::base
