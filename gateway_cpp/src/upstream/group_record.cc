#include "upstream/group_record.h"

#include <google/protobuf/io/coded_stream.h>

namespace penstock::upstream {

namespace {

char* put_number(uint64_t number, char* to) {
  auto* const at = reinterpret_cast<uint8_t*>(to);
  return reinterpret_cast<char*>(
      google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(number, at));
}

char* put_bytes(std::string_view bytes, char* to) {
  return to + bytes.copy(to, bytes.size());
}

char* put_text(std::string_view text, char* to) {
  return put_bytes(text, put_number(text.size(), to));
}

}  // namespace

char* record_any(const TokenGroupsView& groups, char* to) {
  groups.each([&to](const TokenGroup& group) {
    const bool says_more =
        group.choice != 0 || !group.finish_reason.empty() || !group.stop_reason.empty();
    to = put_number(uint64_t{group.ids.size()} << 1U | (says_more ? 1U : 0U), to);
    to = put_bytes(group.ids, to);
    if (!says_more) return;
    to = put_number(group.choice, to);
    to = put_text(group.finish_reason, to);
    to = put_text(group.stop_reason, to);
  });
  return to;
}

}  // namespace penstock::upstream
