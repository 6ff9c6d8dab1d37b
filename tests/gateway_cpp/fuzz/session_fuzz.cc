// Any frames of a replica's on a session with calls whose owners do anything meanwhile: read, wait,
// cancel, open others. A call hears of its own, ends once, and nobody hears of one that is gone.
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>

#include "base/printable.h"
#include "upstream/session_calls.h"

// Stands for what a request's coroutine waits on, which this compiler cannot read.
class penstock::runtime::Signal {};

namespace penstock::upstream {

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

// The bytes of an input, one after the other; zeros behind its end.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}
  bool empty() const { return rest_.empty(); }
  std::uint8_t next() { return empty() ? 0 : static_cast<std::uint8_t>(take(1).front()); }
  std::string_view take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view rest_;
};

class Owners final : public CallLink {
 public:
  static constexpr std::size_t kMost = 16;

  void open() {
    if (owned_.size() >= kMost) return;
    auto call = std::make_unique<Call>(std::shared_ptr<CallLink>(std::shared_ptr<void>(), this),
                                       ++last_id_, 64, news_);
    if (last_id_ % 2 == 0) call->keep_groups();
    calls_.add(*call);
    owned_.emplace(last_id_, std::move(call));
  }
  void close(std::uint64_t id) { owned_.erase(id); }
  void close_all() { owned_.clear(); }

  bool take_in(std::string_view message) { return calls_.take_in(message); }
  void wake(Bytes& bytes) {
    calls_.wake_listed([&](Call& call) { act(call, bytes); });
  }
  void fail_all() {
    calls_.fail_all([](std::uint64_t) { return CallFailure(); });
    require(calls_.size() == 0);
  }

  void grant(std::uint64_t id, std::uint64_t bytes) override {
    require(owned_.contains(id) && bytes > 0);
  }
  void release(Call& call) override { require(calls_.remove(call) != call.is_over()); }

 private:
  void act(Call& call, Bytes& bytes) {
    require(owned_.contains(call.id()) && owned_.at(call.id()).get() == &call);
    require(!ended_.contains(call.id()));
    require(!(call.finished() && call.failed()));
    require(base::is_printable_ascii(call.head().content_type));
    require(call.head().status == 0 || call.head().status / 100 == 2);
    if (call.ended()) ended_.emplace(call.id(), true);
    const std::uint64_t id = call.id();
    const std::uint8_t what = bytes.next();
    if ((what & 1U) != 0) read(call);
    if ((what & 2U) != 0) open();
    if ((what & 4U) != 0) call.cancel();
    if ((what & 8U) != 0) close(what >> 4U);
    if ((what & 16U) != 0) close(id);
  }
  static void read(Call& call) {
    call.pending_groups().each([](const TokenGroup& group) { require(group.ids.size() < 256); });
    runtime::Payload payload;
    call.take(payload);
    call.wrote(payload.size());
    require(!call.has_bytes() && call.pending_groups().empty());
  }

  runtime::Signal news_;
  SessionCalls calls_;
  std::map<std::uint64_t, std::unique_ptr<Call>> owned_;
  std::map<std::uint64_t, bool> ended_;
  std::uint64_t last_id_ = 0;
};

}  // namespace
}  // namespace penstock::upstream

// The first byte says how many calls there are; then each frame has its length before it, and what
// the owners do of it behind it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  penstock::upstream::Bytes bytes(data, size);
  penstock::upstream::Owners owners;
  for (std::uint8_t calls = bytes.next() % 8; calls > 0; --calls) owners.open();
  bool good = true;
  while (good && !bytes.empty()) {
    const std::uint8_t length = bytes.next();
    good = owners.take_in(bytes.take(length));
    owners.wake(bytes);
  }
  if (good) {
    owners.close_all();
  } else {
    owners.fail_all();
    owners.wake(bytes);
  }
  return 0;
}
