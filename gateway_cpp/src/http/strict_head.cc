#include "http/strict_head.h"

#include <algorithm>
#include <cctype>

namespace penstock::http {

namespace {

using Fault = std::optional<std::string>;

constexpr std::string_view kLineEnd = "\r\n";

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || kMarks.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c >= '0' && c <= '9'; });
}

// What the fields say about the body, collected line by line.
struct Framing {
  int hosts = 0;
  int lengths = 0;
  int encodings = 0;

  Fault note(std::string_view name, std::string_view value) {
    if (same_name(name, "host")) ++hosts;
    if (same_name(name, "content-length")) {
      ++lengths;
      if (!is_number(value)) return "Content-Length is not a number";
    }
    if (same_name(name, "transfer-encoding")) {
      ++encodings;
      if (!same_name(value, "chunked")) return "the only Transfer-Encoding taken is `chunked`";
    }
    return std::nullopt;
  }

  Fault verdict(bool is_http_1_1) const {
    if (lengths > 1) return "there is more than one Content-Length";
    if (encodings > 1) return "there is more than one Transfer-Encoding";
    if (lengths > 0 && encodings > 0) {
      return "Content-Length and Transfer-Encoding contradict each other";
    }
    if (encodings > 0 && !is_http_1_1) return "HTTP/1.0 has no Transfer-Encoding";
    if (hosts > 1) return "there is more than one Host";
    if (hosts == 0 && is_http_1_1) return "there is no Host";
    return std::nullopt;
  }
};

Fault check_request_line(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return "the request line is incomplete";
  const auto method = line.substr(0, first);
  const auto target = line.substr(first + 1, last - first - 1);
  const auto version = line.substr(last + 1);
  if (!is_token(method)) return "the method is not a word";
  if (target.empty() || has_control(target) || target.find(' ') != std::string_view::npos ||
      target.find('\t') != std::string_view::npos) {
    return "the path holds blanks or control characters";
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return "the version is not HTTP/1.0 or 1.1";
  return std::nullopt;
}

Fault check_field(std::string_view line, Framing& framing) {
  if (line.front() == ' ' || line.front() == '\t') return "a header is folded over two lines";
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return "a header has no colon";
  const auto name = line.substr(0, colon);
  if (!is_token(name)) return "a header's name has blanks or other characters that do not belong";
  const auto value = trim(line.substr(colon + 1));
  if (has_control(value)) return "a header's value holds control characters";
  return framing.note(name, value);
}

}  // namespace

std::optional<std::string> find_fault(std::string_view head) {
  size_t end = head.find(kLineEnd);
  if (end == std::string_view::npos) return "the request line does not end";
  const auto request_line = head.substr(0, end);
  if (auto fault = check_request_line(request_line)) return fault;
  Framing framing;
  for (head.remove_prefix(end + 2); !head.starts_with(kLineEnd); head.remove_prefix(end + 2)) {
    end = head.find(kLineEnd);
    if (end == std::string_view::npos) return "a header line does not end";
    if (auto fault = check_field(head.substr(0, end), framing)) return fault;
  }
  return framing.verdict(request_line.ends_with("HTTP/1.1"));
}

}  // namespace penstock::http
