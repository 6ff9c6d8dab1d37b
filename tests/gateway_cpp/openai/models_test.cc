#include "openai/models.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::openai {
namespace {

const ModelCard kBase{.id = "mini",
                      .root = "weights/mini",
                      .parent = "",
                      .created = 1700000000,
                      .max_model_len = 2048};
const ModelCard kAdapter{.id = "mini:pirate",
                         .root = "pirate@1",
                         .parent = "mini",
                         .created = 1700000000,
                         .max_model_len = 0};

TEST(Models, ABaseModelHasNoParent) {
  EXPECT_EQ(model_body(kBase),
            R"({"id":"mini","object":"model","created":1700000000,"owned_by":"penstock",)"
            R"("root":"weights/mini","parent":null,"max_model_len":2048,"type":"model",)"
            R"("display_name":"mini","created_at":"2023-11-14T22:13:20Z"})");
}

TEST(Models, AnAdapterNamesItsParent) {
  EXPECT_EQ(model_body(kAdapter),
            R"({"id":"mini:pirate","object":"model","created":1700000000,"owned_by":"penstock",)"
            R"("root":"pirate@1","parent":"mini","max_model_len":null,"type":"model",)"
            R"("display_name":"mini:pirate","created_at":"2023-11-14T22:13:20Z"})");
}

TEST(Models, TheListHoldsAllOfThem) {
  const std::vector<ModelCard> cards = {kBase, kAdapter};
  EXPECT_EQ(model_list_body(cards),
            R"({"object":"list","data":[)" + model_body(kBase) + "," + model_body(kAdapter) +
                R"(],"has_more":false,"first_id":"mini","last_id":"mini:pirate"})");
  EXPECT_EQ(model_list_body({}),
            R"({"object":"list","data":[],"has_more":false,"first_id":null,"last_id":null})");
}

TEST(PercentDecode, DecodesWhatSdksEncode) {
  EXPECT_EQ(percent_decode("org%2Fadapter%20v1"), "org/adapter v1");
  EXPECT_EQ(percent_decode("mini%3Apirate"), "mini:pirate");
  EXPECT_EQ(percent_decode("plain/with/slashes"), "plain/with/slashes");
}

TEST(PercentDecode, LeavesABrokenEscapeAlone) {
  EXPECT_EQ(percent_decode("a%"), "a%");
  EXPECT_EQ(percent_decode("a%4"), "a%4");
  EXPECT_EQ(percent_decode("a%zz"), "a%zz");
  EXPECT_EQ(percent_decode("%-1"), "%-1");
}

}  // namespace
}  // namespace penstock::openai
