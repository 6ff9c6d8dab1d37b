#include "observe/collector.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/printable.h"

namespace penstock::observe {
namespace {

constexpr std::string_view kOfAll = "OTEL_EXPORTER_OTLP_";
constexpr std::string_view kOfTraces = "OTEL_EXPORTER_OTLP_TRACES_";
constexpr std::string_view kPath = "/v1/traces";

struct Said {
  std::string name;
  std::string value;  // empty: nothing
};

base::Error wrong(const std::string& name, const std::string& what) {
  return base::make_error(base::Kind::kConfig, name + " " + what + ": no traces are sent");
}

std::string value_of(const Variables& variables, const std::string& name) {
  const char* value = variables(name.c_str());
  return value == nullptr ? std::string() : value;
}

// As it is said for traces, else for all.
Said said(const Variables& variables, std::string_view option) {
  Said found{std::string(kOfTraces).append(option), {}};
  found.value = value_of(variables, found.name);
  if (!found.value.empty()) return found;
  found.name = std::string(kOfAll).append(option);
  found.value = value_of(variables, found.name);
  return found;
}

bool is_url(std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) return false;
  const bool is_known = text.starts_with("http://") || text.starts_with("https://");
  const std::string_view rest = text.substr(scheme + 3);
  return is_known && base::is_visible_ascii(text) && !rest.empty() && rest.front() != '/' &&
         rest.front() != ':';
}

// %20 and its like; none: it is broken.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned char value = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || end != digits.data() + 2) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

// "key1=value1,key2=value2".
std::optional<NamedTexts> texts_of(std::string_view list) {
  NamedTexts texts;
  while (!list.empty()) {
    const std::string_view one = base::trim(list.substr(0, list.find(',')));
    list.remove_prefix(std::min(list.size(), list.find(',')));
    if (!list.empty()) list.remove_prefix(1);
    if (one.empty()) continue;
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view key = base::trim(one.substr(0, equals));
    auto value = decoded(base::trim(one.substr(equals + 1)));
    if (key.empty() || !value) return std::nullopt;
    texts.emplace_back(key, std::move(*value));
  }
  return texts;
}

bool fits_header(const std::pair<std::string, std::string>& header) {
  const auto is_token = [](char c) { return base::is_visible(c) && c != ':'; };
  const auto is_text = [](char c) { return c == '\t' || base::is_printable(c); };
  return std::ranges::all_of(header.first, is_token) && std::ranges::all_of(header.second, is_text);
}

base::MaybeError set_headers(const Said& option, Collector& collector) {
  auto headers = texts_of(option.value);
  if (!headers || !std::ranges::all_of(*headers, fits_header)) {
    return wrong(option.name, "is not key=value pairs with commas between them");
  }
  collector.headers = std::move(*headers);
  return std::nullopt;
}

base::MaybeError set_timeout(const Said& option, Collector& collector) {
  if (option.value.empty()) return std::nullopt;
  std::uint32_t ms = 0;
  const char* const end = option.value.data() + option.value.size();
  const auto [stop, error] = std::from_chars(option.value.data(), end, ms);
  if (error != std::errc() || stop != end || ms == 0) {
    return wrong(option.name, "is '" + option.value + "', not milliseconds");
  }
  collector.timeout = std::chrono::milliseconds(ms);
  return std::nullopt;
}

base::MaybeError set_compression(const Said& option, Collector& collector) {
  collector.compresses = option.value == "gzip";
  if (option.value.empty() || option.value == "none" || collector.compresses) return std::nullopt;
  return wrong(option.name, "is '" + option.value + "', not gzip or none");
}

// Those that are said beside the others are no reason to send nothing.
void set_resource(const Variables& variables, Collector& collector) {
  if (auto texts = texts_of(value_of(variables, "OTEL_RESOURCE_ATTRIBUTES"))) {
    collector.resource = std::move(*texts);
  }
}

// In letters of either size, as the specification has it.
bool is_true(std::string_view text) {
  return std::ranges::equal(text, std::string_view("true"), {},
                            [](char c) { return static_cast<char>(c | 0x20); });
}

std::string endpoint(const Variables& variables) {
  if (is_true(value_of(variables, "OTEL_SDK_DISABLED"))) return {};
  if (value_of(variables, "OTEL_TRACES_EXPORTER") == "none") return {};
  const Said found = said(variables, "ENDPOINT");
  if (found.value.empty() || found.name.starts_with(kOfTraces)) return found.value;
  std::string url = found.value;
  while (url.ends_with('/')) url.pop_back();
  return url.append(kPath);
}

}  // namespace

std::string Collector::shown() const {
  const std::size_t host = url.find("://") + 3;
  const std::size_t end = std::min(url.find_first_of("/?#", host), url.size());
  const std::size_t secret = url.substr(0, end).rfind('@');
  const std::size_t begin = secret == std::string::npos ? host : secret + 1;
  return url.substr(0, host) +
         url.substr(begin, std::min(url.find_first_of("?#"), url.size()) - begin);
}

base::Result<Collector> collector_of(const Variables& variables) {
  Collector collector;
  collector.url = endpoint(variables);
  if (collector.url.empty()) return collector;
  if (!is_url(collector.url)) {
    return wrong(said(variables, "ENDPOINT").name, "is not http:// or https:// with a host");
  }
  const Said protocol = said(variables, "PROTOCOL");
  if (!protocol.value.empty() && protocol.value != "http/protobuf") {
    return wrong(protocol.name, "is '" + protocol.value + "', and a gateway speaks http/protobuf");
  }
  collector.certificates = said(variables, "CERTIFICATE").value;
  collector.client_certificate = said(variables, "CLIENT_CERTIFICATE").value;
  collector.client_key = said(variables, "CLIENT_KEY").value;
  set_resource(variables, collector);
  if (auto no = set_headers(said(variables, "HEADERS"), collector)) return *no;
  if (auto no = set_timeout(said(variables, "TIMEOUT"), collector)) return *no;
  if (auto no = set_compression(said(variables, "COMPRESSION"), collector)) return *no;
  return collector;
}

}  // namespace penstock::observe
