#include "base/text_cursor.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/hex_text.h"

namespace penstock::base {
namespace {

template <class Write>
std::string written(const Write& write) {
  std::string room(64, '#');
  TextCursor cursor(room.data());
  write(cursor);
  room.resize(static_cast<std::size_t>(cursor.at() - room.data()));
  return room;
}

TEST(TextCursor, PutsOnePieceBehindTheOther) {
  const std::string text = written([](TextCursor& cursor) {
    cursor.put("status ");
    cursor.put_number(200U);
    cursor.put(' ');
    cursor.put("");
    cursor.put_padded<3>(7);
  });
  EXPECT_EQ(text, "status 200 007");
}

TEST(TextCursor, HasRoomForEveryNumberInWhatItSays) {
  const std::string least = written(
      [](TextCursor& cursor) { cursor.put_number(std::numeric_limits<std::int64_t>::min()); });
  EXPECT_EQ(least, "-9223372036854775808");
  EXPECT_LE(least.size(), TextCursor::kNumberRoom);
  const std::string most = written(
      [](TextCursor& cursor) { cursor.put_number(std::numeric_limits<std::uint64_t>::max()); });
  EXPECT_EQ(most, "18446744073709551615");
  EXPECT_LE(most.size(), TextCursor::kNumberRoom);
}

TEST(HexText, WritesAllSixteenDigitsOrTheLast) {
  EXPECT_EQ(written([](TextCursor& cursor) { put_hex(cursor, 0x0123456789abcdefU); }),
            "0123456789abcdef");
  std::string text = "id-";
  append_hex(text, 0x0123456789abcdefU, 8);
  EXPECT_EQ(text, "id-89abcdef");
}

}  // namespace
}  // namespace penstock::base
