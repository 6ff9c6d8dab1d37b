// What a stream of /v1/responses has told its client so far, so that one that breaks can end as the
// API ends it: with the whole response, failed. One for each such stream; no sockets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace penstock::openai {

// Who answers, for a stream that broke before it said anything.
struct Answerer {
  std::string_view request_id;
  std::string_view model = {};
  std::int64_t now = 0;  // seconds since 1970
};

class ResponseStream {
 public:
  // Whether one of the events may end a response: those that do name a type that does.
  static bool may_end(std::string_view events);

  // Reads what goes to the client next: any number of whole events. How many of its bytes the event
  // that ends the response and what follows it take; 0: it goes on.
  std::size_t note(std::string_view events);

  // The events that tell of the failure. Of an end that was noted it knows nothing.
  std::string failed(const base::Error& error, const Answerer& answerer) const;

 private:
  // Of an item under way: its text as JSON has it, between the quotes.
  struct Part {
    std::string_view type;  // static
    std::string text;
  };
  struct Item {
    std::string json;  // as its first event told it, or its last
    bool done = false;
    std::map<std::uint64_t, Part> parts;
    std::string arguments;  // of a call, as the text of a part
  };
  struct Event;
  struct Row;

  bool note_event(std::string_view text);
  void begin(const Event& event);
  void add_item(const Event& event);
  void end_item(const Event& event);
  void add_text(const Event& event);
  void add_reasoning(const Event& event);
  void add_arguments(const Event& event);
  void add_part(const Event& event, std::string_view type);
  std::string output() const;
  static std::string item_so_far(const Item& item);

  std::string response_;  // as the stream began; empty: it has not
  std::map<std::uint64_t, Item> items_;
  std::uint64_t next_sequence_ = 0;  // number of the next event
};

}  // namespace penstock::openai
