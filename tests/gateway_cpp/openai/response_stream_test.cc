#include "openai/response_stream.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "openai/json_members.h"

namespace penstock::openai {
namespace {

const base::Error kLost = base::make_error(base::Kind::kUpstreamFailed, "the replica is gone");
constexpr Answerer kAnswerer{.request_id = "req_1", .model = "mini", .now = 1700000000};

std::string member(std::string_view object, std::string_view key) {
  for (MemberReader reader(object); reader.next();) {
    if (reader.key() == key) return std::string(reader.value());
  }
  return "(none)";
}

// The data of the last event, and that it is named as its type.
std::string last_data(const std::string& events) {
  EXPECT_TRUE(events.ends_with("}\n\n")) << events;
  const std::size_t at = events.rfind("event: ");
  const std::size_t data = events.find("\ndata: ", at);
  EXPECT_NE(data, std::string::npos) << events;
  const std::string json = events.substr(data + 7, events.size() - data - 9);
  EXPECT_EQ(member(json, "type"), '"' + events.substr(at + 7, data - at - 7) + '"');
  return json;
}

// Events as an engine writes them, numbered from 0.
class Story {
 public:
  std::vector<std::string> events;

  Story& tell(const std::string& type, const std::string& more) {
    events.push_back("event: " + type + "\ndata: {" + more + (more.empty() ? "" : ",") +
                     R"("sequence_number":)" + std::to_string(events.size()) + R"(,"type":")" +
                     type + "\"}\n\n");
    return *this;
  }
  Story& begin() {
    const std::string response =
        R"("response":{"id":"resp_9","object":"response","status":"in_progress","output":[],)"
        R"("tools":[{"type":"function","name":"f"}],"instructions":"be, {brief}"})";
    return tell("response.created", response).tell("response.in_progress", response);
  }
  Story& message(int index) {
    return tell("response.output_item.added",
                R"("item":{"id":"msg_1","content":[],"role":"assistant","status":"in_progress",)"
                R"("type":"message"},"output_index":)" +
                    std::to_string(index));
  }
  Story& text(const std::string& json, int index = 0) {
    return tell("response.output_text.delta", R"("content_index":0,"delta":")" + json +
                                                  R"(","item_id":"msg_1","output_index":)" +
                                                  std::to_string(index));
  }
};

std::string failed_after(const std::vector<std::string>& events) {
  ResponseStream stream;
  for (const auto& event : events) EXPECT_EQ(stream.note(event), 0U) << event;
  return last_data(stream.failed(kLost, kAnswerer));
}

TEST(ResponseStream, EndsWithTheWholeResponseAndTheNextNumber) {
  Story story;
  story.begin().message(0).text("Hel").text("lo \\\"you\\\"");
  const std::string data = failed_after(story.events);
  EXPECT_EQ(member(data, "sequence_number"), "5");
  const std::string response = member(data, "response");
  EXPECT_EQ(member(response, "id"), R"("resp_9")");
  EXPECT_EQ(member(response, "status"), R"("failed")");
  EXPECT_EQ(member(response, "tools"), R"([{"type":"function","name":"f"}])");
  EXPECT_EQ(member(response, "instructions"), R"("be, {brief}")");
  EXPECT_EQ(member(response, "error"),
            R"({"code":"upstream_error","message":"the replica is gone"})");
  const std::string output = member(response, "output");
  const std::string item = output.substr(1, output.size() - 2);
  EXPECT_EQ(member(item, "id"), R"("msg_1")");
  EXPECT_EQ(member(item, "status"), R"("incomplete")");
  EXPECT_EQ(member(item, "content"),
            R"([{"type":"output_text","text":"Hello \"you\"","annotations":[]}])");
}

TEST(ResponseStream, KeepsOfAHugeResponseOnlyWhatMakesItOne) {
  const std::string huge = "\"" + std::string(100'000, 'x') + "\"";
  Story story;
  for (const char* type : {"response.created", "response.in_progress"}) {
    story.tell(type, R"("response":{"id":"resp_9","object":"response","created_at":5,"model":"m",)"
                     R"("status":"in_progress","metadata":{"a":)" +
                         huge + R"(},"instructions":)" + huge + R"(,"parallel_tool_calls":false})");
  }
  const std::string data = failed_after(story.message(0).text("Hi").events);
  EXPECT_LT(data.size(), 2'000U);
  const std::string response = member(data, "response");
  EXPECT_EQ(member(response, "id"), R"("resp_9")");
  EXPECT_EQ(member(response, "parallel_tool_calls"), "false");
  EXPECT_EQ(member(response, "metadata"), "{}");
  EXPECT_EQ(member(response, "instructions"), "null");
  EXPECT_EQ(member(response, "tools"), "[]");
  EXPECT_EQ(member(response, "status"), R"("failed")");
  EXPECT_NE(member(response, "output").find("Hi"), std::string::npos);
}

TEST(ResponseStream, KeepsItemsThatAreDoneAsTheyWereTold) {
  const std::string done = R"({"id":"msg_1","status":"completed","content":[{"text":"Hi"}]})";
  Story story;
  story.begin().message(0).text("Hi").tell("response.output_item.done",
                                           R"("item":)" + done + R"(,"output_index":0)");
  story.tell("response.output_item.added",
             R"("item":{"id":"fc_1","type":"function_call","name":"f","arguments":"",)"
             R"("status":"in_progress"},"output_index":1)");
  story.tell("response.function_call_arguments.delta",
             R"("delta":"{\"a\":","item_id":"fc_1","output_index":1)");
  const std::string output = member(member(failed_after(story.events), "response"), "output");
  EXPECT_EQ(output, "[" + done +
                        R"(,{"id":"fc_1","type":"function_call","name":"f",)"
                        R"("status":"incomplete","arguments":"{\"a\":"}])");
}

TEST(ResponseStream, TellsOfReasoningThatIsUnderWay) {
  Story story;
  story.begin().tell("response.output_item.added",
                     R"("item":{"id":"rs_1","type":"reasoning","summary":[]},"output_index":0)");
  story.tell("response.reasoning_text.delta",
             R"("content_index":0,"delta":"hm","item_id":"rs_1","output_index":0)");
  const std::string output = member(member(failed_after(story.events), "response"), "output");
  EXPECT_NE(output.find(R"([{"type":"reasoning_text","text":"hm"}])"), std::string::npos) << output;
}

TEST(ResponseStream, BeginsAResponseThatNeverBegan) {
  const std::string events = ResponseStream().failed(kLost, kAnswerer);
  ASSERT_TRUE(events.starts_with("event: response.created\n")) << events;
  const std::string data = last_data(events);
  EXPECT_EQ(member(data, "type"), R"("response.failed")");
  EXPECT_EQ(member(data, "sequence_number"), "1");
  const std::string response = member(data, "response");
  for (const char* key : {"id", "object", "created_at", "model", "output", "parallel_tool_calls",
                          "tool_choice", "tools", "error", "incomplete_details", "instructions",
                          "metadata", "temperature", "top_p"}) {
    EXPECT_NE(member(response, key), "(none)") << key;
  }
  EXPECT_EQ(member(response, "model"), R"("mini")");
  EXPECT_EQ(member(response, "status"), R"("failed")");
}

TEST(ResponseStream, SaysWhichBytesEndIt) {
  for (const char* type : {"response.completed", "response.incomplete", "response.failed"}) {
    Story story;
    story.begin().message(0).tell(type, R"("response":{})");
    ResponseStream stream;
    EXPECT_EQ(stream.note(story.events[0] + story.events[1]), 0U);
    EXPECT_EQ(stream.note(story.events[2] + story.events[3]), story.events[3].size());
    const std::string data = last_data(stream.failed(kLost, kAnswerer));
    EXPECT_EQ(member(data, "sequence_number"), "3") << "in the place of the end";
  }
}

TEST(ResponseStream, PassesOverCommentsAndUnknownEvents) {
  Story story;
  story.begin().tell("response.mcp_call.in_progress", R"("item_id":"x")");
  ResponseStream stream;
  EXPECT_EQ(stream.note(": ping\n\ndata: [DONE]\n\ndata: 5\n\n"), 0U);
  for (const auto& event : story.events) EXPECT_EQ(stream.note(": ping\n\n" + event), 0U);
  EXPECT_EQ(member(last_data(stream.failed(kLost, kAnswerer)), "sequence_number"), "3");
}

// However events come together, the end is the same.
TEST(ResponseStream, DoesNotCareHowEventsAreBunched) {
  Story story;
  story.begin().message(0);
  for (int i = 0; i < 20; ++i) story.text("w" + std::to_string(i) + "\\n");
  const std::string wanted = failed_after(story.events);
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> bunches = {""};
    for (const auto& event : story.events) {
      bunches.back() += event;
      if (random() % 3 == 0) bunches.emplace_back();
    }
    EXPECT_EQ(failed_after(bunches), wanted);
  }
}

}  // namespace
}  // namespace penstock::openai
