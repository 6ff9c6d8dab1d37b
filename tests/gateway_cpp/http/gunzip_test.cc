#include "http/gunzip.h"

#include <gtest/gtest.h>

#include "http/content_coding.h"
#include "http/gzip_text.h"

namespace penstock::http {
namespace {

struct Unpacked {
  std::string text;
  std::string_view fault;
  bool whole = false;
  size_t largest_step = 0;
};

// `packed` in pieces of so many bytes.
Unpacked unpack(std::string_view packed, size_t piece = 1 << 20) {
  Gunzip gunzip;
  Unpacked result;
  while ((!packed.empty() || gunzip.has_more()) && gunzip.fault().empty()) {
    const size_t before = result.text.size();
    packed.remove_prefix(gunzip.step(packed.substr(0, piece), result.text));
    result.largest_step = std::max(result.largest_step, result.text.size() - before);
  }
  result.fault = gunzip.fault();
  result.whole = gunzip.whole();
  return result;
}

TEST(Gunzip, UnpacksWholeAndByteByByteTheSame) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i * 7919) + ",";
  const std::string packed = gzip(text);
  for (const size_t piece : {packed.size(), size_t{1}, size_t{1000}}) {
    const auto unpacked = unpack(packed, piece);
    EXPECT_EQ(unpacked.text, text);
    EXPECT_TRUE(unpacked.whole);
    EXPECT_EQ(unpacked.fault, "");
  }
}

TEST(Gunzip, TakesNoStepOfMoreThanItsBound) {
  const std::string bomb = gzip(std::string(10 << 20, '\0'));
  EXPECT_LT(bomb.size(), 20'000U);
  const auto unpacked = unpack(bomb);
  EXPECT_EQ(unpacked.text.size(), 10U << 20U);
  EXPECT_EQ(unpacked.largest_step, Gunzip::kStepBytes);
  EXPECT_TRUE(unpacked.whole);
}

TEST(Gunzip, ReadsSeveralMembersAsOneText) {
  const auto unpacked = unpack(gzip("one ") + gzip("") + gzip("two"));
  EXPECT_EQ(unpacked.text, "one two");
  EXPECT_TRUE(unpacked.whole);
}

TEST(Gunzip, TakesNoCrowdOfMembers) {
  std::string packed;
  for (int i = 0; i < 1024; ++i) packed += gzip("");
  EXPECT_EQ(unpack(packed).fault, "");
  EXPECT_EQ(unpack(packed + gzip("")).fault, "too many members");
}

TEST(Gunzip, IsNotWholeBeforeItsEnd) {
  const std::string packed = gzip("a text that breaks off");
  for (size_t size = 0; size < packed.size(); ++size) {
    const auto unpacked = unpack(std::string_view(packed).substr(0, size));
    EXPECT_FALSE(unpacked.whole) << size;
    EXPECT_EQ(unpacked.fault, "") << size;
  }
  const auto second = unpack(packed + packed.substr(0, 5));
  EXPECT_FALSE(second.whole) << "another member has begun";
}

TEST(Gunzip, SaysWhatIsWrong) {
  EXPECT_EQ(unpack("{\"model\":1}").fault, "incorrect header check");
  EXPECT_EQ(unpack(gzip("text") + "more").fault, "bytes follow its end that are none");
  EXPECT_EQ(unpack(gzip("text") + std::string(8, '\0')).fault,
            "bytes follow its end that are none");
  std::string corrupt = gzip("text");
  corrupt[corrupt.size() - 8] ^= 1;
  EXPECT_EQ(unpack(corrupt).fault, "incorrect data check");
}

TEST(ContentCoding, KnowsGzipAndNothingElse) {
  const auto coding = [](std::string_view name) {
    RequestHead head;
    head.content_encoding = name;
    return coding_of(head);
  };
  for (const char* name : {"", "identity", "Identity"}) EXPECT_EQ(coding(name), Coding::kIdentity);
  for (const char* name : {"gzip", "GZip", "x-gzip"}) EXPECT_EQ(coding(name), Coding::kGzip);
  for (const char* name : {"br", "deflate", "gzip, gzip", "zstd", "gzip;q=1"}) {
    EXPECT_EQ(coding(name), Coding::kUnknown) << name;
  }
}

}  // namespace
}  // namespace penstock::http
