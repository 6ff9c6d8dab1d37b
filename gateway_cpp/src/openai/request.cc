#include "openai/request.h"

#include <simdjson.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/utf8_text.h"
#include "openai/by_body.h"
#include "openai/json_walk.h"

namespace penstock::openai {
namespace {

namespace ondemand = simdjson::ondemand;
using base::Error;
using base::Kind;
using ondemand::json_type;
using simdjson::error_code;

constexpr std::size_t kShownText = 40;             // of a hostile name or number
constexpr std::size_t kKeptBodyBytes = 1U << 20U;  // what the buffers stay large enough for

Error wrong_type(std::string_view param, std::string_view wanted) {
  return base::make_error(Kind::kInvalidType,
                          "'" + std::string(param) + "' must be " + std::string(wanted),
                          std::string(param));
}

Error missing(std::string_view param, std::string_view wanted) {
  return base::make_error(
      Kind::kMissingParameter,
      "'" + std::string(param) + "' is missing: it must be " + std::string(wanted),
      std::string(param));
}

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// One pass over one body.
class Reader {
 public:
  Reader(const Endpoint& endpoint, std::string& body, const base::BodyElements& most)
      : endpoint_(&endpoint), body_(body), most_(most) {}

  base::Result<Request> read(ondemand::parser& parser) {
    if (body_.empty()) {
      return base::make_error(Kind::kInvalidJson, "the body is empty: send a JSON object");
    }
    // Some versions of simdjson pass over it; the engine's parser does not.
    if (body_.starts_with(kByteOrderMark)) {
      return base::make_error(Kind::kInvalidJson,
                              "the body begins with a byte order mark: send the JSON without it");
    }
    body_.reserve(body_.size() + simdjson::SIMDJSON_PADDING);
    error_code error = parser.iterate(body_.data(), body_.size(), body_.capacity()).get(document_);
    started_ = !error;
    if (started_ && endpoint_->by_body) error = choose_by_body(document_, endpoint_, error_);
    if (started_ && !error && !error_) error = read_fields();
    if (!error_ && error) error_ = invalid_json(error);
    if (!error_) check_presence();
    if (!error_ && over_) error_ = too_many(walker_.elements, most_, *over_);
    if (error_) return *std::move(error_);
    request_.endpoint = endpoint_;
    return std::move(request_);
  }

 private:
  // What a field of the body means. Each consumes the value; JSON that is broken comes back as
  // simdjson's error, JSON that is wrong for us as error_.
  using Read = error_code (Reader::*)(ondemand::value&);
  struct FieldReader {
    std::string_view name;
    Read read;
  };

  error_code read_fields() {
    ondemand::object object;
    if (const auto error = document_.get_object().get(object)) return error;
    const auto error = each_member(object, [this](std::string_view key, ondemand::value& value) {
      const auto error = read_field(key, value);
      if (!error && !error_ && !over_ && is_over(walker_.elements, most_))
        over_ = std::string(key.substr(0, kShownText));
      return error;
    });
    if (error || error_) return error;
    // There is no location behind the last token.
    const bool at_end = document_.current_location().error() == simdjson::OUT_OF_BOUNDS;
    return at_end ? simdjson::SUCCESS : simdjson::TRAILING_CONTENT;
  }

  template <class Own>
  error_code each_member(ondemand::object& object, Own own) {
    for (auto entry : object) {
      ondemand::field field;
      if (const auto error = std::move(entry).get(field)) return error;
      std::string_view key;
      if (const auto error = unescaped_key(field).get(key)) return error;
      ondemand::value value = field.value();
      ++walker_.elements.values;
      const auto error = own(key, value);
      if (error || error_) return error;
    }
    return simdjson::SUCCESS;
  }

  error_code read_field(std::string_view key, ondemand::value& value) {
    static constexpr std::array<FieldReader, 6> kFields = {{
        {"model", &Reader::read_model},
        {"user", &Reader::read_user},
        {"session_id", &Reader::read_session},
        {"tools", &Reader::read_tools},
        {"functions", &Reader::read_tools},
        {"metadata", &Reader::read_metadata},
    }};
    for (const FieldReader& field : kFields) {
      if (field.name == key) return (this->*field.read)(value);
    }
    return read_own_field(key, value);
  }

  // A field that means something at this endpoint, and maybe something else at another.
  error_code read_own_field(std::string_view key, ondemand::value& value) {
    if (key.empty()) return pass_over(value);
    if (key == endpoint_->prompt_field) return read_prompt(value);
    if (key == "stream" && endpoint_->streams) return read_stream(value);
    if (key == "stream_options" && endpoint_->streams) return read_stream_options(value);
    for (std::size_t i = 0; i < limits_.size(); ++i) {
      if (key == endpoint_->limits[i]) return read_count(value, key, 0, limits_[i]);
    }
    if (key == endpoint_->choices) return read_choices(value);
    return pass_over(value);
  }

  error_code pass_over(ondemand::value& value) {
    json_type type{};
    if (const auto error = value.type().get(type)) return error;
    return walker_.walk(value, kFieldDepth,
                        type == json_type::array ? Inside::kMessages : Inside::kOther);
  }

  error_code read_string(ondemand::value& value, std::string_view param, std::string& out) {
    json_type type{};
    if (const auto error = value.type().get(type)) return error;
    if (type == json_type::null) return pass_over(value);
    if (type != json_type::string) {
      error_ = wrong_type(param, "a string");
      return simdjson::SUCCESS;
    }
    std::string_view text;
    if (const auto error = value.get_string().get(text)) return error;
    out = text;
    return simdjson::SUCCESS;
  }

  error_code read_bool(ondemand::value& value, std::string_view param, bool& out) {
    json_type type{};
    if (const auto error = value.type().get(type)) return error;
    if (type != json_type::boolean && type != json_type::null) {
      error_ = wrong_type(param, "true or false");
      return simdjson::SUCCESS;
    }
    if (const auto error = pass_over(value)) return error;
    out = type == json_type::boolean && scalar_token(value) == "true";
    return simdjson::SUCCESS;
  }

  error_code read_count(ondemand::value& value, std::string_view param, std::uint64_t least,
                        std::optional<std::uint64_t>& out) {
    out.reset();
    json_type type{};
    if (const auto error = value.type().get(type)) return error;
    if (type == json_type::array || type == json_type::object) {
      error_ = wrong_type(param, "a whole number");
      return simdjson::SUCCESS;
    }
    if (const auto error = pass_over(value)) return error;
    if (type != json_type::number && type != json_type::string) return simdjson::SUCCESS;
    const std::string_view token = scalar_token(value);
    // Engines take a number in a string as well: so it counts, and what is none here is refused,
    // since an engine may still read one in it.
    const bool is_text = type == json_type::string;
    out = whole_number(is_text ? token.substr(1, token.size() - 2) : token);
    if (out && *out >= least) return simdjson::SUCCESS;
    error_ = base::make_error(
        Kind::kInvalidValue,
        "'" + std::string(param) + "' is " + std::string(token.substr(0, kShownText)) +
            ": it must be a whole number of at least " + std::to_string(least),
        std::string(param));
    error_->quotes = true;
    return simdjson::SUCCESS;
  }

  error_code read_model(ondemand::value& value) {
    return read_string(value, "model", request_.model);
  }
  // No field of OpenAI's: what is no text is the engine's to judge.
  error_code read_session(ondemand::value& value) {
    json_type type{};
    if (const auto error = value.type().get(type)) return error;
    if (type != json_type::string) return pass_over(value);
    return read_string(value, "session_id", request_.session);
  }
  error_code read_user(ondemand::value& value) { return read_string(value, "user", request_.user); }

  // Whatever they are, the engine judges them.
  error_code read_tools(ondemand::value& value) {
    json_type type{};
    if (const auto error = value.type().get(type)) return error;
    if (type != json_type::array) return pass_over(value);
    ondemand::array tools;
    if (const auto error = value.get_array().get(tools)) return error;
    for (auto element : tools) {
      ondemand::value tool;
      if (const auto error = element.get(tool)) return error;
      ++walker_.elements.values;
      ++walker_.elements.tools;
      if (const auto error = walker_.walk(tool, kFieldDepth + 1, Inside::kOther)) return error;
      request_.has_tools = true;
    }
    return simdjson::SUCCESS;
  }

  error_code read_stream(ondemand::value& value) {
    bool stream = false;
    const auto error = read_bool(value, "stream", stream);
    request_.form = stream ? AnswerForm::kStream : AnswerForm::kUnary;
    return error;
  }

  error_code read_stream_options(ondemand::value& value) {
    request_.include_usage = false;
    json_type type{};
    if (const auto error = value.type().get(type)) return error;
    if (type == json_type::null) return pass_over(value);
    if (type != json_type::object) {
      error_ = wrong_type("stream_options", "an object");
      return simdjson::SUCCESS;
    }
    return read_members(value, "include_usage", [this](ondemand::value& option) {
      return read_bool(option, "stream_options.include_usage", request_.include_usage);
    });
  }

  // OpenAI lets a value be of 512 characters, so a longer name is no mistake: it is cut. What is no
  // object, and no text, is the engine's to judge.
  error_code read_metadata(ondemand::value& value) {
    request_.prompt_version.clear();
    json_type type{};
    if (const auto error = value.type().get(type)) return error;
    if (type != json_type::object) return pass_over(value);
    return read_members(value, "prompt_version", [this](ondemand::value& member) {
      json_type type{};
      if (const auto error = member.type().get(type)) return error;
      if (type != json_type::string) return walker_.walk(member, kFieldDepth + 1, Inside::kOther);
      std::string_view text;
      if (const auto error = member.get_string().get(text)) return error;
      request_.prompt_version = base::cut_text(text, kLongestPromptVersion);
      return simdjson::SUCCESS;
    });
  }

  // Of an object in the body `own` reads the member of that name.
  template <class Own>
  error_code read_members(ondemand::value& value, std::string_view name, Own own) {
    ondemand::object object;
    if (const auto error = value.get_object().get(object)) return error;
    return each_member(object, [&](std::string_view key, ondemand::value& member) {
      return key == name ? own(member) : walker_.walk(member, kFieldDepth + 1, Inside::kOther);
    });
  }

  error_code read_choices(ondemand::value& value) {
    std::optional<std::uint64_t> choices;
    const auto error = read_count(value, endpoint_->choices, 1, choices);
    request_.choices = choices.value_or(1);
    return error;
  }

  error_code read_prompt(ondemand::value& value) {
    has_prompt_ = false;
    json_type type{};
    if (const auto error = value.type().get(type)) return error;
    if (type == json_type::null) return pass_over(value);
    const bool is_array = type == json_type::array;
    if (is_array && endpoint_->prompt == Prompt::kMessages) return read_messages(value);
    has_prompt_ = endpoint_->prompt == Prompt::kText && (is_array || type == json_type::string);
    if (has_prompt_) return read_texts(value);
    error_ = wrong_type(endpoint_->prompt_field, wanted_prompt());
    return simdjson::SUCCESS;
  }

  // Where an answer has choices, each text, and each list of tokens, is a prompt of its own.
  error_code read_texts(ondemand::value& value) {
    const std::size_t before = walker_.elements.messages;
    const auto error = pass_over(value);
    const std::size_t texts = walker_.elements.messages - before;
    request_.prompts = endpoint_->choices.empty() ? 1 : std::max<std::uint64_t>(texts, 1);
    return error;
  }

  error_code read_messages(ondemand::value& value) {
    ondemand::array messages;
    if (const auto error = value.get_array().get(messages)) return error;
    const std::string field(endpoint_->prompt_field);
    std::size_t count = 0;
    for (auto element : messages) {
      ondemand::value message;
      if (const auto error = element.get(message)) return error;
      json_type type{};
      if (const auto error = message.type().get(type)) return error;
      if (type != json_type::object) {
        error_ = wrong_type(field + "[" + std::to_string(count) + "]", "an object");
        return simdjson::SUCCESS;
      }
      if (const auto error = walker_.walk(message, kFieldDepth + 1, Inside::kMessages)) {
        return error;
      }
      ++count;
    }
    walker_.elements.values += count;
    walker_.elements.messages += count;
    if (count == 0) {
      error_ = base::make_error(Kind::kInvalidValue,
                                "'" + field + "' is empty: it needs at least one message", field);
    }
    has_prompt_ = true;
    return simdjson::SUCCESS;
  }

  std::string_view wanted_prompt() const {
    return endpoint_->prompt == Prompt::kMessages ? "a non-empty array of objects"
                                                  : "a string or an array";
  }

  void check_presence() {
    if (!has_prompt_ && endpoint_->prompt != Prompt::kUnread) {
      error_ = missing(endpoint_->prompt_field, wanted_prompt());
    }
    request_.max_tokens = limits_[0] ? limits_[0] : limits_[1];
  }

  Error invalid_json(error_code error) {
    if (error == simdjson::INCORRECT_TYPE) {
      return base::make_error(Kind::kInvalidJson, "the body must be a JSON object");
    }
    if (error == simdjson::INCOMPLETE_ARRAY_OR_OBJECT) {
      return base::make_error(Kind::kInvalidJson,
                              "the body is not valid JSON: it ends before its object does, or "
                              "something follows the object");
    }
    if (error == simdjson::DEPTH_ERROR) {
      return base::make_error(Kind::kInvalidJson, "the body is nested deeper than " +
                                                      std::to_string(kDeepestNesting) +
                                                      " levels, the limit");
    }
    std::string message = "the body is not valid JSON: ";
    message += simdjson::error_message(error);
    const char* at = nullptr;
    // A document that never started has no location to ask for.
    if (started_ && !document_.current_location().get(at) && at >= body_.data() &&
        at <= body_.data() + body_.size()) {
      message += " (at byte " + std::to_string(at - body_.data()) + ")";
    }
    return base::make_error(Kind::kInvalidJson, std::move(message));
  }

  const Endpoint* endpoint_;
  std::string& body_;
  ondemand::document document_;
  bool started_ = false;
  Request request_;
  std::array<std::optional<std::uint64_t>, 2> limits_;  // as the endpoint lists them
  bool has_prompt_ = false;
  const base::BodyElements& most_;
  Walker walker_;
  std::optional<std::string> over_;  // the field by which it has too many elements
  base::MaybeError error_;
};

}  // namespace

struct RequestParser::Impl {
  ondemand::parser parser;
};

RequestParser::RequestParser() : impl_(std::make_unique<Impl>()) {}
RequestParser::~RequestParser() = default;

base::Result<Request> RequestParser::parse(const Endpoint& endpoint, std::string& body,
                                           const base::BodyElements& most) {
  auto request = Reader(endpoint, body, most).read(impl_->parser);
  // The buffers are several times the body: those of a large one are not kept.
  if (impl_->parser.capacity() > kKeptBodyBytes) impl_->parser = ondemand::parser();
  return request;
}

}  // namespace penstock::openai
