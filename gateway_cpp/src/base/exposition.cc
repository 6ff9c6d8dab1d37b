#include "base/exposition.h"

namespace penstock::base {
namespace {

constexpr std::string_view kTotal = "_total";

std::string_view name(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      break;
  }
  return "histogram";
}

// OpenMetrics has its whole numbers with a point, and a series is the same in either format.
std::string bound_text(double bound) {
  std::array<char, 32> text{};
  char* const end = std::to_chars(text.data(), text.data() + text.size(), bound).ptr;
  std::string out(text.data(), end);
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

}  // namespace

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

void HistogramSum::add(const TracedHistogram& histogram) {
  add(histogram.counts());
  const Exemplars others = histogram.exemplars();
  for (std::size_t i = 0; i < exemplars.size(); ++i) {
    if (others[i].at > exemplars[i].at) exemplars[i] = others[i];
  }
}

// In OpenMetrics a counter is called as its samples are, but for their end.
void Exposition::family(const Metric& metric) {
  name_ = metric.name;
  buckets_.clear();
  std::string_view called = metric.name;
  if (format_ == TextFormat::kOpenMetrics && called.ends_with(kTotal)) {
    called.remove_suffix(kTotal.size());
  }
  out_.append("# HELP ").append(called).append(" ").append(metric.help).append("\n");
  out_.append("# TYPE ").append(called).append(" ").append(name(metric.type)).append("\n");
}

void Exposition::begin(std::string_view labels, std::string_view suffix) {
  out_ += name_;
  out_ += suffix;
  if (!labels.empty()) out_.append("{").append(labels).append("}");
  out_ += ' ';
}

void Exposition::note_bounds(Bounds bounds) {
  for (const double bound : bounds) buckets_.push_back(",le=\"" + bound_text(bound) + "\"} ");
  buckets_.emplace_back(",le=\"+Inf\"} ");
}

void Exposition::histogram(std::string_view labels, const HistogramSum& sum) {
  if (buckets_.empty()) note_bounds(sum.bounds);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += sum.counts[i];
    out_.append(name_).append("_bucket{").append(labels).append(buckets_[i]);
    append(seen);
    if (format_ == TextFormat::kOpenMetrics && sum.exemplars[i].is_there()) {
      exemplar(sum.exemplars[i]);
    }
    out_ += '\n';
  }
  sample(labels, static_cast<double>(sum.sum_ns) / 1e9, "_sum");
  sample(labels, seen, "_count");
}

void Exposition::exemplar(const Exemplar& last) {
  using Seconds = std::chrono::duration<double>;
  out_ += " # {trace_id=\"";
  out_.append(last.trace_id.data(), last.trace_id.size()).append("\"} ");
  append(std::chrono::duration_cast<Seconds>(last.value).count());
  constexpr std::int64_t kThousand = 1000;
  const auto ms = unix_ms(last.at);
  const std::string part = std::to_string(kThousand + ms % kThousand);  // three digits after a 1
  out_.append(" ").append(std::to_string(ms / kThousand)).append(".").append(part, 1);
}

std::string Exposition::take() {
  if (format_ == TextFormat::kOpenMetrics) out_ += "# EOF\n";
  return std::move(out_);
}

}  // namespace penstock::base
