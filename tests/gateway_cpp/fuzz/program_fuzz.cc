// Any frames of a router program's on its stream, with questions that are put and closed meanwhile:
// each has one answer at most, in bounds, and nobody hears of one that is closed.
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "proxy/program_link.h"

namespace penstock::proxy {

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

class Stream final : public upstream::ProgramStream {
 public:
  v1::GatewayFrame& outgoing() override { return told_; }
  bool closed_to_asks() const override { return false; }
  void close() override {}

 private:
  v1::GatewayFrame told_;
};

struct Question {
  std::unique_ptr<RoutingQuestion> question;  // null: none is put
  runtime::Signal news;
  Asked was = Asked::kOpen;
  unsigned calls = 0;

  void put(ProgramLink& link) {
    if (question) return;
    was = Asked::kOpen;
    calls = 0;
    question = std::make_unique<RoutingQuestion>(link.next_id(), base::SteadyTime{},
                                                 std::chrono::milliseconds(20));
    v1::RouteAsk ask;
    ask.set_ask_id(question->id());
    link.ask(*question, news, ask);
  }
  void close(ProgramLink& link) {
    if (question) link.close(*question);
    question.reset();
  }
  void look() {
    if (!question) return;
    require(was == Asked::kOpen || question->state() == was);
    was = question->state();
    while (const auto call = question->next_call()) {
      require(was == Asked::kOpen && call->ask_id() == question->id());
      require(call->seq_id().size() <= RoutingQuestion::kLongestSeqId);
      require(++calls <= RoutingQuestion::kMostCalls);
    }
    require(was != Asked::kDecided || question->decision().error().empty());
  }
};

}  // namespace

}  // namespace penstock::proxy

// The input: one byte says what happens, the next how long a frame is.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto next = [&rest] {
    const auto byte = static_cast<std::uint8_t>(rest.front());
    rest.remove_prefix(1);
    return byte;
  };
  upstream::ProgramStream::Owner* owner = nullptr;
  const auto link = std::make_shared<proxy::ProgramLink>(
      std::make_shared<control_plane::ProgramSeat>(), [&owner](const auto& /*seat*/, auto& of) {
        owner = &of;
        return std::make_shared<proxy::Stream>();
      });
  std::array<proxy::Question, 4> questions;
  bool ended = false;
  while (rest.size() >= 2 && !ended) {
    const std::uint8_t act = next();
    auto& one = questions[act / 4 % questions.size()];
    if (act % 4 == 0) one.put(*link);
    if (act % 4 == 1) one.close(*link);
    if (act % 4 >= 2) {
      const std::size_t length = next();
      const std::string_view bytes = rest.substr(0, length);
      v1::ProgramFrame frame;
      ended = !frame.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
              !owner->on_frame(frame);
      rest.remove_prefix(bytes.size());
      ended ? owner->on_end("nonsense") : owner->on_turn();
    }
    for (auto& each : questions) each.look();
  }
  for (auto& each : questions) each.close(*link);
  return 0;
}
