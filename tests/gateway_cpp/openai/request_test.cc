#include "openai/request.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace penstock::openai {
namespace {

using base::Error;
using base::Result;

const Endpoint& kChat = *find_endpoint("/v1/chat/completions");
const Endpoint& kText = *find_endpoint("/v1/completions");

Result<Request> parse(std::string body, const Endpoint& endpoint = kChat) {
  RequestParser parser;
  return parser.parse(endpoint, body, {});
}

Error failure(const std::string& body, const Endpoint& endpoint = kChat) {
  const auto request = parse(body, endpoint);
  if (request) {
    ADD_FAILURE() << "accepted: " << body;
    return {};
  }
  return request.error();
}

// A chat body with further fields.
std::string chat(const std::string& more) {
  return R"({"model":"mini","messages":[{"role":"user","content":"hi"}])" +
         (more.empty() ? "" : "," + more) + "}";
}

TEST(Request, ReadsWhatTheGatewayNeeds) {
  const auto request = parse(chat(
      R"("stream":true,"max_tokens":64,"n":2,"user":"u1","stream_options":{"include_usage":true})"));
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->model, "mini");
  EXPECT_EQ(request->form, AnswerForm::kStream);
  EXPECT_EQ(request->max_tokens, 64U);
  EXPECT_EQ(request->choices, 2U);
  EXPECT_EQ(request->user, "u1");
  EXPECT_TRUE(request->include_usage);
}

TEST(Request, DefaultsToOneUnaryAnswer) {
  const auto request = parse(chat(""));
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->form, AnswerForm::kUnary);
  EXPECT_FALSE(request->max_tokens.has_value());
  EXPECT_EQ(request->choices, 1U);
  EXPECT_FALSE(request->include_usage);
}

TEST(Request, EachTextIsAPromptOfItsOwnWhereAnswersHaveChoices) {
  EXPECT_EQ(parse(R"({"model":"m","prompt":"a"})", kText)->prompts, 1U);
  EXPECT_EQ(parse(R"({"model":"m","prompt":["a",[1,2]]})", kText)->prompts, 2U);
  EXPECT_EQ(parse(R"({"model":"m","stop":["x","y","z"],"prompt":["a","b"]})", kText)->prompts, 2U);
}

TEST(Request, NullIsAsGoodAsAbsent) {
  const auto request =
      parse(chat(R"("stream":null,"max_tokens":null,"n":null,"user":null,"stream_options":null)"));
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->form, AnswerForm::kUnary);
}

TEST(Request, SaysWhichErrorsQuoteTheBody) {
  EXPECT_TRUE(parse(chat(R"("max_tokens":"secret")")).error().quotes);
  EXPECT_FALSE(parse(chat(R"("stream":"secret")")).error().quotes);
}

TEST(Request, MaxCompletionTokensGoesBeforeMaxTokensInEitherOrder) {
  EXPECT_EQ(parse(chat(R"("max_tokens":1,"max_completion_tokens":2)"))->max_tokens, 2U);
  EXPECT_EQ(parse(chat(R"("max_completion_tokens":2,"max_tokens":1)"))->max_tokens, 2U);
}

TEST(Request, TheLastOfTwoEqualKeysCounts) {
  const auto request = parse(R"({"model":"a","stream":true,"messages":[{"role":"user"}],)"
                             R"("stream":false,"model":"b"})");
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->model, "b");
  EXPECT_EQ(request->form, AnswerForm::kUnary);
}

TEST(Request, AnEscapedKeyIsTheSameKey) {
  const auto request = parse(R"({"\u006dodel":"mi\u006ei","messages":[{}]})");
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->model, "mini");
}

TEST(Request, NotesWhetherItBringsTools) {
  const auto brings = [](const std::string& fields) { return parse(chat(fields))->has_tools; };
  EXPECT_TRUE(brings(R"("tools":[{"type":"function"}])"));
  EXPECT_TRUE(brings(R"("functions":[{"name":"look"}])"));
  EXPECT_FALSE(brings(R"("tools":[])"));
  EXPECT_FALSE(brings(R"("tools":null)"));
  EXPECT_FALSE(brings(R"("tools":"none","user":"tools")"));
}

TEST(Request, KnowsTheVersionOfItsPromptByItsMetadata) {
  const auto version = [](const std::string& fields) {
    return parse(chat(fields))->prompt_version;
  };
  EXPECT_EQ(version(R"("metadata":{"a":"b","prompt_version":"v\u0031","c":["d"]})"), "v1");
  EXPECT_EQ(version(""), "");
  EXPECT_EQ(version(R"("metadata":{"prompt_version":"v1"},"metadata":{})"), "");
}

TEST(Request, CutsALongVersionOfItsPromptAtTheEndOfACharacter) {
  const auto version = [](const std::string& text) {
    return parse(chat(R"("metadata":{"prompt_version":")" + text + "\"}"))->prompt_version;
  };
  EXPECT_EQ(version(std::string(512, 'v')), std::string(kLongestPromptVersion, 'v'));
  EXPECT_EQ(version(std::string(63, 'v') + "\u00e9"), std::string(63, 'v'));
}

TEST(Request, LeavesMetadataThatIsNoneToTheEngine) {
  for (const auto* fields : {R"("metadata":null)", R"("metadata":"prompt_version")",
                             R"("metadata":{"prompt_version":null})",
                             R"("metadata":{"prompt_version":{"prompt_version":"v1"}})"}) {
    EXPECT_EQ(parse(chat(fields))->prompt_version, "") << fields;
  }
  EXPECT_EQ(failure(chat(R"("metadata":{"prompt_version":01})")).code, "invalid_json");
}

TEST(Request, KeepsTheBodyByteForByte) {
  const std::string original = chat(R"( "x" : [ 1e999 , "\u00e9" ] )") + "\n ";
  std::string body = original;
  RequestParser parser;
  ASSERT_TRUE(parser.parse(kChat, body, {}).has_value());
  EXPECT_EQ(body, original);
}

TEST(Request, CompletionsNeedAPromptInOneOfItsShapes) {
  EXPECT_TRUE(parse(R"({"model":"m","prompt":"hi"})", kText).has_value());
  EXPECT_TRUE(parse(R"({"model":"m","prompt":["a","b"]})", kText).has_value());
  EXPECT_TRUE(parse(R"({"model":"m","prompt":[[1,2],[3]]})", kText).has_value());
  const Error missing = failure(R"({"model":"m","messages":[{}]})", kText);
  EXPECT_EQ(missing.param, "prompt");
  EXPECT_EQ(missing.code, "missing_required_parameter");
  EXPECT_EQ(failure(R"({"model":"m","prompt":5})", kText).code, "invalid_type");
  EXPECT_EQ(failure(R"({"model":"m","prompt":null})", kText).code, "missing_required_parameter");
}

TEST(Request, ReadsTheLimitAndThePromptThatItsEndpointNames) {
  const Endpoint& responses = *find_endpoint("/v1/responses");
  const auto request = parse(
      R"({"input":"hi","max_output_tokens":7,"max_tokens":[],"n":0,"stream":true})", responses);
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->max_tokens, 7U);
  EXPECT_EQ(request->choices, 1U) << "no field of responses";
  EXPECT_EQ(request->form, AnswerForm::kStream);
  EXPECT_EQ(failure(R"({"prompt":"hi"})", responses).param, "input");
  const Endpoint& messages = *find_endpoint("/v1/messages");
  EXPECT_TRUE(parse(R"({"messages":[{}],"max_tokens":5})", messages).has_value());
  EXPECT_EQ(failure(R"({"messages":[]})", messages).param, "messages");
}

TEST(Request, LeavesThePromptsOfOtherEndpointsToTheEngine) {
  for (const Endpoint& endpoint : endpoints()) {
    if (endpoint.prompt != Prompt::kUnread || endpoint.by_body) continue;
    const auto request =
        parse(R"({"messages":5,"input":{},"stream":"x","max_tokens":-1})", endpoint);
    ASSERT_TRUE(request.has_value()) << endpoint.path << ": " << request.error().message;
    EXPECT_EQ(request->form, AnswerForm::kUnary) << endpoint.path;
    EXPECT_EQ(failure("{", endpoint).code, "invalid_json") << endpoint.path;
  }
}

TEST(Request, ARequestMayNameNoModel) {
  for (const char* body : {R"({"messages":[{}]})", R"({"model":null,"messages":[{}]})",
                           R"({"model":"","messages":[{}]})"}) {
    const auto request = parse(body);
    ASSERT_TRUE(request.has_value()) << request.error().message;
    EXPECT_EQ(request->model, "");
  }
}

TEST(Request, TakesTheNumbersThatEnginesTake) {
  EXPECT_EQ(parse(chat(R"("max_tokens":3.0)"))->max_tokens, 3U);
  EXPECT_EQ(parse(chat(R"("max_tokens":0.0)"))->max_tokens, 0U);
  EXPECT_EQ(parse(chat(R"("max_tokens":1e2)"))->max_tokens, 100U);
  const auto texts = parse(chat(R"("max_tokens":"10","n":"2")"));
  EXPECT_EQ(texts->max_tokens, 10U) << "engines take numbers in strings, too";
  EXPECT_EQ(texts->choices, 2U);
}

TEST(Request, SaysThatSomethingFollowsTheBody) {
  const Error error = failure(chat("") + " x");
  EXPECT_NE(error.message.find("something follows"), std::string::npos) << error.message;
}

struct Bad {
  const char* body;
  const char* code;
  const char* param;
};

class BadRequest : public testing::TestWithParam<Bad> {};

TEST_P(BadRequest, IsRefusedWithTheFieldAtFault) {
  const Error error = failure(GetParam().body);
  EXPECT_EQ(error.status, 400U);
  EXPECT_EQ(error.type, "invalid_request_error");
  EXPECT_EQ(error.code, GetParam().code) << error.message;
  EXPECT_EQ(error.param, GetParam().param) << error.message;
  EXPECT_FALSE(error.client_may_retry);
}

constexpr const char* kMissing = "missing_required_parameter";
INSTANTIATE_TEST_SUITE_P(
    Fields, BadRequest,
    testing::Values(
        Bad{R"({"model":7,"messages":[{}]})", "invalid_type", "model"},
        Bad{R"({"model":["m"],"messages":[{}]})", "invalid_type", "model"},
        Bad{R"({"model":"m"})", kMissing, "messages"},
        Bad{R"({"model":"m","messages":null})", kMissing, "messages"},
        Bad{R"({"model":"m","messages":[]})", "invalid_value", "messages"},
        Bad{R"({"model":"m","messages":"hi"})", "invalid_type", "messages"},
        Bad{R"({"model":"m","messages":{}})", "invalid_type", "messages"},
        Bad{R"({"model":"m","messages":[{},3]})", "invalid_type", "messages[1]"},
        Bad{R"({"model":"m","messages":[{}],"stream":"yes"})", "invalid_type", "stream"},
        Bad{R"({"model":"m","messages":[{}],"stream":1})", "invalid_type", "stream"},
        Bad{R"({"model":"m","messages":[{}],"stream_options":true})", "invalid_type",
            "stream_options"},
        Bad{R"({"model":"m","messages":[{}],"stream_options":{"include_usage":"x"}})",
            "invalid_type", "stream_options.include_usage"},
        Bad{R"({"model":"m","messages":[{}],"max_tokens":{}})", "invalid_type", "max_tokens"},
        Bad{R"({"model":"m","messages":[{}],"max_tokens":-1})", "invalid_value", "max_tokens"},
        Bad{R"({"model":"m","messages":[{}],"max_tokens":""})", "invalid_value", "max_tokens"},
        Bad{R"({"model":"m","messages":[{}],"n":" 16 "})", "invalid_value", "n"},
        Bad{R"({"model":"m","messages":[{}],"n":"1\u0036"})", "invalid_value", "n"},
        Bad{R"({"model":"m","messages":[{}],"n":"1_6"})", "invalid_value", "n"},
        Bad{R"({"model":"m","messages":[{}],"n":"nan"})", "invalid_value", "n"},
        Bad{R"({"model":"m","messages":[{}],"max_tokens":1.5})", "invalid_value", "max_tokens"},
        Bad{R"({"model":"m","messages":[{}],"max_tokens":99999999999999999999999})",
            "invalid_value", "max_tokens"},
        Bad{R"({"model":"m","messages":[{}],"max_completion_tokens":[]})", "invalid_type",
            "max_completion_tokens"},
        Bad{R"({"model":"m","messages":[{}],"n":0})", "invalid_value", "n"},
        Bad{R"({"model":"m","messages":[{}],"user":{}})", "invalid_type", "user"}));

INSTANTIATE_TEST_SUITE_P(
    Json, BadRequest,
    testing::Values(Bad{"", "invalid_json", ""}, Bad{" ", "invalid_json", ""},
                    Bad{"hello", "invalid_json", ""}, Bad{"[]", "invalid_json", ""},
                    Bad{"5", "invalid_json", ""}, Bad{"null", "invalid_json", ""},
                    Bad{"\"x\"", "invalid_json", ""}, Bad{"{", "invalid_json", ""},
                    Bad{"}", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}])", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}]}})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}]} {})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}]} x)", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}],})", "invalid_json", ""},
                    Bad{R"({"model":"m" "messages":[{}]})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{} {}]})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{"role" "user"}]})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{"role":'user'}]})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}],"x":tru})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}],"x":nul})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}],"stream":truely})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}],"x":01})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}],"x":1.})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}],"x":-})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}],"x":1e})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}],"x":NaN})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}],"x":"\q"})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}],"x":"\u12"})", "invalid_json", ""},
                    Bad{R"({"model":"m","messages":[{}],"\z":1})", "invalid_json", ""},
                    Bad{"{\"model\":\"m\",\"messages\":[{}],\"x\":\"a\nb\"}", "invalid_json", ""},
                    Bad{"{\"model\":\"m\",\"messages\":[{}],\"x\":\"\xFF\"}", "invalid_json", ""},
                    Bad{"\xEF\xBB\xBF{\"model\":\"m\",\"messages\":[{}]}", "invalid_json", ""}));

TEST(Request, SaysWhereTheJsonBreaks) {
  const Error error = failure(R"({"model":"m","messages":[{}],"x":tru})");
  EXPECT_NE(error.message.find("at byte"), std::string::npos) << error.message;
}

TEST(Request, NumbersOfAnySizeAreNumbers) {
  EXPECT_TRUE(parse(chat(R"("x":1e999,"y":-0.0e-12,"z":)" + std::string(5000, '9'))).has_value());
}

TEST(Request, DeepNestingIsRefusedAndNotFollowed) {
  for (const std::string open : {"[", "{\"a\":"}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += open;
    deep += "1";
    for (int i = 0; i < 100'000; ++i) deep += open == "[" ? "]" : "}";
    EXPECT_EQ(failure(chat("\"x\":" + deep)).code, "invalid_json");
  }
  const std::string fair = std::string(200, '[') + std::string(200, ']');
  EXPECT_TRUE(parse(chat("\"x\":" + fair)).has_value());
}

TEST(Request, OneParserReadsManyBodiesOfAllSizes) {
  RequestParser parser;
  for (const std::size_t size : {1U, 1'000'000U, 10U, 3'000'000U, 0U}) {
    std::string body = chat("\"x\":\"" + std::string(size, 'y') + "\"");
    EXPECT_TRUE(parser.parse(kChat, body, {}).has_value());
    std::string broken = body.substr(0, body.size() / 2);
    EXPECT_FALSE(parser.parse(kChat, broken, {}).has_value());
  }
}

// Every prefix of a body is a body that a client may send.
TEST(Request, NoPrefixOfABodyIsAccepted) {
  const std::string whole =
      chat(R"("stream":true,"stream_options":{"include_usage":true},"x":[1,"a\n",{"b":null}])");
  RequestParser parser;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::string body = whole.substr(0, size);
    EXPECT_FALSE(parser.parse(kChat, body, {}).has_value()) << body;
  }
}

// Random damage: anything may come back except a crash, a hang, or a changed body.
TEST(Request, SurvivesRandomDamage) {
  std::mt19937 random(7);
  const std::string whole = chat(
      R"("stream":true,"stream_options":{"include_usage":true},"max_tokens":5,"x":[1.5e3,"\u00e9"])");
  const std::string alphabet = "{}[]\",:\\0123e-.tfn \n\x01\x80\xC3\xFF";
  RequestParser parser;
  std::size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string body = whole;
    const std::size_t edits = 1 + random() % 4;
    for (std::size_t i = 0; i < edits; ++i) {
      const std::size_t at = random() % body.size();
      const char letter = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0:
          body[at] = letter;
          break;
        case 1:
          body.insert(at, 1, letter);
          break;
        default:
          body.erase(at, 1 + random() % 3);
          break;
      }
    }
    const std::string before = body;
    const auto request = parser.parse(random() % 2 == 0 ? kChat : kText, body, {});
    ASSERT_EQ(body, before);
    if (!request) {
      ++refused;
      EXPECT_EQ(request.error().status, 400U);
    }
  }
  EXPECT_GT(refused, 10'000U);
}

TEST(Request, SurvivesBytesWithoutAnySense) {
  std::mt19937 random(11);
  RequestParser parser;
  for (int round = 0; round < 5'000; ++round) {
    std::string body(random() % 300, '\0');
    for (char& c : body) c = static_cast<char>(random());
    EXPECT_FALSE(parser.parse(kChat, body, {}).has_value());
  }
}

}  // namespace
}  // namespace penstock::openai
