#include "base/exposition.h"

namespace penstock::base {

std::string label(std::string_view name, std::string_view value) {
  std::string out(name);
  out += "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

void HistogramSum::add(const Histogram& histogram) {
  bounds = histogram.bounds();
  for (std::size_t i = 0; i <= bounds.size(); ++i) {
    const std::uint64_t count = histogram.count(i);
    counts[i] += count;
    observed += count;
  }
  sum_ns += histogram.sum_ns();
}

void Exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = "penstock_gateway_";
  name_ += name;
  buckets_.clear();
  out_.append("# HELP ").append(name_).append(" ").append(help).append("\n");
  out_.append("# TYPE ").append(name_).append(" ").append(type).append("\n");
}

void Exposition::begin(std::string_view labels, std::string_view suffix) {
  out_ += name_;
  out_ += suffix;
  if (!labels.empty()) out_.append("{").append(labels).append("}");
  out_ += ' ';
}

void Exposition::note_bounds(Bounds bounds) {
  for (const double bound : bounds) {
    std::array<char, 32> text{};
    char* const end = std::to_chars(text.data(), text.data() + text.size(), bound).ptr;
    buckets_.push_back(",le=\"" + std::string(text.data(), end) + "\"} ");
  }
  buckets_.emplace_back(",le=\"+Inf\"} ");
}

void Exposition::histogram(std::string_view labels, const HistogramSum& sum) {
  if (buckets_.empty()) note_bounds(sum.bounds);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += sum.counts[i];
    out_.append(name_).append("_bucket{").append(labels).append(buckets_[i]);
    append(seen);
    out_ += '\n';
  }
  sample(labels, static_cast<double>(sum.sum_ns) / 1e9, "_sum");
  sample(labels, seen, "_count");
}

}  // namespace penstock::base
