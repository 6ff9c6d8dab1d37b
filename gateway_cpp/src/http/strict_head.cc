#include "http/strict_head.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "http/syntax.h"

namespace penstock::http {

namespace {

using Fault = std::optional<std::string>;

constexpr std::string_view kLineEnd = "\r\n";

bool is_token(std::string_view text) {
  // Written out: of each request some hundred characters come here, and calls would be most of it.
  for (const char c : text) {
    if (!is_token_character(c)) return false;
  }
  return !text.empty();
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 18 && std::all_of(text.begin(), text.end(), is_digit);
}

bool is_name_character(char c) {
  return is_digit(c) || is_letter(c) || c == '-' || c == '.' || c == '_';
}

bool is_ipv6_character(char c) { return hex_digit(c) >= 0 || c == ':' || c == '.'; }

// Fields that are only kept. Of those that may come once a second one is a fault.
enum class Times : uint8_t { kOnce, kFirst };
struct Kept {
  std::string_view name;
  std::string_view RequestHead::*value;
  Times times;
};

constexpr std::array<Kept, 16> kKept = {{
    {"content-type", &RequestHead::content_type, Times::kOnce},
    {"content-encoding", &RequestHead::content_encoding, Times::kOnce},
    {"origin", &RequestHead::origin, Times::kOnce},
    {"access-control-request-headers", &RequestHead::asked_headers, Times::kFirst},
    {"x-client-request-id", &RequestHead::client_request_id, Times::kFirst},
    {"x-request-id", &RequestHead::request_id, Times::kFirst},
    {"traceparent", &RequestHead::traceparent, Times::kFirst},
    {"authorization", &RequestHead::authorization, Times::kOnce},
    {"x-api-key", &RequestHead::x_api_key, Times::kOnce},
    {"api-key", &RequestHead::api_key, Times::kOnce},
    {"x-penstock-priority", &RequestHead::priority, Times::kOnce},
    {"x-penstock-session", &RequestHead::session, Times::kOnce},
    {"x-penstock-category", &RequestHead::category, Times::kOnce},
    {"x-penstock-metadata", &RequestHead::metadata, Times::kOnce},
    {"x-penstock-degrade", &RequestHead::degrade, Times::kOnce},
    {"accept", &RequestHead::accept, Times::kFirst},
}};

// Most fields of a request have a length that none of these has.
constexpr uint64_t kKeptLengths = [] {
  uint64_t lengths = 0;
  for (const Kept& kept : kKept) lengths |= uint64_t{1} << kept.name.size();
  return lengths;
}();

// Null: it is none of them.
const Kept* kept_field(std::string_view name) {
  if (name.size() > 63 || (kKeptLengths >> name.size() & 1U) == 0) return nullptr;
  const auto* kept =
      std::ranges::find_if(kKept, [name](const Kept& one) { return same_text(one.name, name); });
  return kept == kKept.end() ? nullptr : kept;
}

// Reads one head: the request line, each field, and what they say together.
class HeadReader {
 public:
  Fault read(std::string_view bytes) {
    size_t end = bytes.find(kLineEnd);
    if (end == std::string_view::npos) return "the request line does not end";
    if (auto fault = read_line(bytes.substr(0, end))) return fault;
    for (bytes.remove_prefix(end + 2); !bytes.starts_with(kLineEnd); bytes.remove_prefix(end + 2)) {
      end = bytes.find(kLineEnd);
      if (end == std::string_view::npos) return "a header line does not end";
      if (auto fault = read_field(bytes.substr(0, end))) return fault;
    }
    return verdict();
  }

  const RequestHead& head() const { return head_; }

 private:
  Fault read_line(std::string_view line) {
    const size_t first = line.find(' ');
    const size_t last = line.rfind(' ');
    if (first == std::string_view::npos || first == last) return "the request line is incomplete";
    const auto version = line.substr(last + 1);
    head_.method = line.substr(0, first);
    head_.target = line.substr(first + 1, last - first - 1);
    if (!is_token(head_.method)) return "the method is not a word";
    if (head_.target.empty() || has_control(head_.target) ||
        head_.target.find(' ') != std::string_view::npos ||
        head_.target.find('\t') != std::string_view::npos) {
      return "the path holds blanks or control characters";
    }
    if (version != "HTTP/1.1" && version != "HTTP/1.0") return "the version is not HTTP/1.0 or 1.1";
    head_.is_http_1_0 = version == "HTTP/1.0";
    return read_absolute_form();
  }

  Fault read_field(std::string_view line) {
    if (line.front() == ' ' || line.front() == '\t') return "a header is folded over two lines";
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return "a header has no colon";
    const auto name = line.substr(0, colon);
    if (!is_token(name)) return "a header's name has blanks or other characters that do not belong";
    const auto value = trim(line.substr(colon + 1));
    if (has_control(value)) return "a header's value holds control characters";
    return note(name, value);
  }

  Fault verdict() {
    if (head_.content_length && head_.is_chunked) {
      return "Content-Length and Transfer-Encoding contradict each other";
    }
    if (head_.is_chunked && head_.is_http_1_0) return "HTTP/1.0 has no Transfer-Encoding";
    if (!has_host_ && !head_.is_http_1_0) return "there is no Host";
    if (has_host_ && !is_authority(head_.host)) return "Host is not a host name";
    if (has_host_ && !authority_.empty() && !same_text(authority_, head_.host)) {
      return "Host and the target name different hosts";
    }
    if (!has_host_) head_.host = authority_;
    const bool stays = head_.is_http_1_0 ? says_keep_alive_ && !says_close_ : !says_close_;
    head_.keep_alive = stays ? KeepAlive::kYes : KeepAlive::kNo;
    // A client of HTTP/1.0 could not read the answer to it.
    head_.expects_continue = head_.expects_continue && !head_.is_http_1_0;
    return std::nullopt;
  }

  // "http://host/path?query": the host apart, the rest as if it had been asked for alone.
  Fault read_absolute_form() {
    for (const std::string_view scheme : {"http://", "https://"}) {
      if (!same_text(head_.target.substr(0, scheme.size()), scheme)) continue;
      const auto rest = head_.target.substr(scheme.size());
      const size_t end = std::min(rest.find_first_of("/?#"), rest.size());
      authority_ = rest.substr(0, end);
      if (!is_authority(authority_)) return "the target's host is not a host name";
      head_.target = rest.substr(end);
      // "http://host" and "http://host?query" ask for the root.
      if (!head_.target.starts_with('/')) head_.target = "/";
    }
    return std::nullopt;
  }

  Fault note(std::string_view name, std::string_view value) {
    if (const Kept* kept = kept_field(name)) return keep(*kept, name, value);
    if (same_text(name, "host")) return note_host(value);
    if (same_text(name, "content-length")) return note_length(value);
    if (same_text(name, "transfer-encoding")) return note_encoding(value);
    if (same_text(name, "connection")) note_connection(value);
    if (same_text(name, "expect")) head_.expects_continue |= same_text(value, "100-continue");
    return std::nullopt;
  }

  Fault keep(const Kept& kept, std::string_view name, std::string_view value) {
    if (kept.times == Times::kOnce && !(head_.*kept.value).empty()) {
      return "there is more than one " + std::string(name);
    }
    if ((head_.*kept.value).empty()) head_.*kept.value = value;
    return std::nullopt;
  }

  Fault note_host(std::string_view value) {
    if (has_host_) return "there is more than one Host";
    has_host_ = true;
    head_.host = value;
    return std::nullopt;
  }

  Fault note_length(std::string_view value) {
    if (head_.content_length) return "there is more than one Content-Length";
    if (!is_number(value)) return "Content-Length is not a number";
    uint64_t length = 0;
    std::from_chars(value.data(), value.data() + value.size(), length);
    head_.content_length = length;
    return std::nullopt;
  }

  Fault note_encoding(std::string_view value) {
    if (head_.is_chunked) return "there is more than one Transfer-Encoding";
    if (!same_text(value, "chunked")) return "the only Transfer-Encoding taken is `chunked`";
    head_.is_chunked = true;
    return std::nullopt;
  }

  // One list, however many lines it stands on.
  void note_connection(std::string_view value) {
    each_element(value, [this](std::string_view option) {
      says_close_ |= same_text(option, "close");
      says_keep_alive_ |= same_text(option, "keep-alive");
    });
  }

  RequestHead head_;
  std::string_view authority_;  // of an absolute target
  bool has_host_ = false;
  bool says_close_ = false;
  bool says_keep_alive_ = false;
};

}  // namespace

bool is_authority(std::string_view text) {
  size_t end = 0;
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == std::string_view::npos || end == 1) return false;
    const auto address = text.substr(1, end - 1);
    if (!std::all_of(address.begin(), address.end(), is_ipv6_character)) return false;
    ++end;
  } else {
    while (end < text.size() && is_name_character(text[end])) ++end;
    if (end == 0) return false;
  }
  if (end == text.size()) return true;
  const auto port = text.substr(end + 1);
  return text[end] == ':' && port.size() <= 5 && std::all_of(port.begin(), port.end(), is_digit);
}

std::variant<RequestHead, HeadFault> read_head(std::string_view bytes) {
  HeadReader reader;
  if (auto fault = reader.read(bytes)) return HeadFault{*std::move(fault)};
  return reader.head();
}

}  // namespace penstock::http
