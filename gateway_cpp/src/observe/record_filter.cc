#include "observe/record_filter.h"

#include <algorithm>
#include <charconv>

#include "base/utf8_text.h"

namespace penstock::observe {

namespace {

constexpr std::size_t kListed = 100;
constexpr unsigned kClasses = 10;  // of statuses: below it is a class, 4 or 5
constexpr unsigned kOfClass = 100;
constexpr std::size_t kMostIdBytes = 128;  // that a record has of a client's id

bool is_of(std::string_view deployment, const v1::RequestRecord& record) {
  if (record.asked() == deployment) return true;
  const int stays = record.stays_size();
  return stays > 0 && (record.stays(0).deployment() == deployment ||
                       record.stays(stays - 1).deployment() == deployment);
}

// A text of less than 16 KiB at the beginning of `bytes`, where that is of this tag.
std::string_view take_text(std::string_view& bytes, char tag) {
  if (bytes.size() < 2 || bytes[0] != tag) return {};
  std::size_t size = static_cast<unsigned char>(bytes[1]);
  std::size_t head = 2;
  if (size >= 0x80U && bytes.size() > head) {
    size = (size & 0x7FU) | static_cast<std::size_t>(static_cast<unsigned char>(bytes[2])) << 7U;
    ++head;
  }
  const std::string_view text = bytes.substr(head, size);
  bytes.remove_prefix(std::min(bytes.size(), head + size));
  return text;
}

// The bytes of a trace id; none: it is no such id.
std::string trace_of(std::string_view id) {
  constexpr std::size_t kDigits = 32;
  std::string bytes;
  if (id.size() != kDigits) return bytes;
  for (const char* at = id.data(); bytes.size() < kDigits / 2; at += 2) {
    unsigned char byte = 0;
    if (std::from_chars(at, at + 2, byte, 16).ptr != at + 2) return {};
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

}  // namespace

std::size_t limit_of(const v1::RequestFilter& filter) {
  return filter.limit() == 0 ? kListed : std::min<std::size_t>(filter.limit(), kMostListed);
}

bool may_match(const v1::RequestFilter& filter, const RecordFacts& facts) {
  constexpr std::uint64_t kMicroseconds = 1000;
  if (!filter.tenant().empty() && filter.tenant() != facts.tenant) return false;
  if (filter.before_us() != 0 && facts.received_us >= filter.before_us()) return false;
  if (facts.received_us < filter.since_us()) return false;
  if (filter.slower_than_ms() != 0 &&
      facts.duration_us / kMicroseconds <= filter.slower_than_ms()) {
    return false;
  }
  const unsigned wanted = filter.status();
  return wanted == 0 || wanted == (wanted < kClasses ? facts.status / kOfClass : facts.status);
}

bool matches(const v1::RequestFilter& filter, const v1::RequestRecord& record) {
  const std::string& reason = filter.reason();
  const bool is_why = reason.empty() || record.drop_reason() == reason ||
                      record.error_code() == reason || record.degraded() == reason;
  return is_why && (filter.deployment().empty() || is_of(filter.deployment(), record));
}

RecordName::RecordName(std::string_view id)
    : id_(id), clients_(base::cut_text(id, kMostIdBytes)), trace_(trace_of(id)) {}

NamedBy RecordName::named_by(std::string_view record) const {
  constexpr char kRequestId = 0x0A;
  constexpr char kClientRequestId = 0x12;
  constexpr char kTraceId = 0x1A;
  if (id_.empty()) return NamedBy::kNobody;
  if (take_text(record, kRequestId) == id_) return NamedBy::kUs;
  if (take_text(record, kClientRequestId) == clients_) return NamedBy::kClient;
  const bool is_traced = !trace_.empty() && take_text(record, kTraceId) == trace_;
  return is_traced ? NamedBy::kClient : NamedBy::kNobody;
}

}  // namespace penstock::observe
