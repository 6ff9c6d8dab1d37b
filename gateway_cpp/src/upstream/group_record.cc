#include "upstream/group_record.h"

#include <google/protobuf/io/coded_stream.h>

namespace penstock::upstream {

namespace {

char* put_number(uint64_t number, char* to) {
  auto* const at = reinterpret_cast<uint8_t*>(to);
  return reinterpret_cast<char*>(
      google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(number, at));
}

char* put_text(std::string_view text, char* to) {
  to = put_number(text.size(), to);
  return to + text.copy(to, text.size());
}

}  // namespace

char* record_any(const TokenGroupsView& groups, char* to) {
  groups.each([&to](const TokenGroup& group) {
    const uint64_t more = (group.choice != 0 ? kHasChoice : 0) |
                          (!group.finish_reason.empty() ? kHasFinish : 0) |
                          (!group.stop_reason.empty() ? kHasStop : 0);
    if (more == 0 && group.ids.size() <= kFewIds) {
      to = put_text(group.ids, to);
      return;
    }
    to = put_number(kOther | more | (!group.ids.empty() ? kHasIds : 0), to);
    if (!group.ids.empty()) to = put_text(group.ids, to);
    if ((more & kHasChoice) != 0) to = put_number(group.choice, to);
    if ((more & kHasFinish) != 0) to = put_text(group.finish_reason, to);
    if ((more & kHasStop) != 0) to = put_text(group.stop_reason, to);
  });
  return to;
}

}  // namespace penstock::upstream
