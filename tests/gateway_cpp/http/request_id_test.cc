#include "http/request_id.h"

#include <gtest/gtest.h>

namespace penstock::http {
namespace {

std::string_view id_of(std::string_view client_request_id, std::string_view request_id) {
  RequestHead head;
  head.client_request_id = client_request_id;
  head.request_id = request_id;
  return callers_id(head);
}

TEST(CallersId, IsOpenAisHeaderBeforeTheCommonOne) {
  EXPECT_EQ(id_of("mine", "theirs"), "mine");
  EXPECT_EQ(id_of("", "theirs"), "theirs");
  EXPECT_EQ(id_of("", ""), "");
}

TEST(CallersId, HasUpTo512PrintableCharacters) {
  const std::string longest(512, 'x');
  EXPECT_EQ(id_of(longest, ""), longest);
  EXPECT_EQ(id_of(longest + "x", ""), "");
  EXPECT_EQ(id_of("a b ~!", ""), "a b ~!");
}

TEST(CallersId, CountsAsNotSentWhereItIsUnfit) {
  for (const char* bad : {"caf\xc3\xa9", "tab\there", "\x7f", "a\nb", "\xff"}) {
    EXPECT_EQ(id_of(bad, ""), "") << bad;
    EXPECT_EQ(id_of(bad, "theirs"), "theirs") << bad;
  }
}

TEST(RequestIds, AreNeverTheSame) {
  RequestIds ids;
  const std::string one = ids.next();
  EXPECT_TRUE(one.starts_with("req_"));
  EXPECT_NE(one, ids.next());
}

}  // namespace
}  // namespace penstock::http
