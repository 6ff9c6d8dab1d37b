// Hands pairs of answers over to who compares them: Shadow.Record on a thread of its own, renewed
// with backoff (100 ms to 1 s), and one that reads what was counted. What is not acknowledged is
// kept, and comes again on a new stream; beyond kMostPairs or kMostBytes of it pairs are dropped,
// and so is a batch that the comparer refuses time and again: no other would ever come after it.
// The comparer's questions go to whoever asks them; what these came to goes back on the stream that
// they came on, or nowhere. Owned by main.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "admission/shadow_book.h"
#include "control_plane/head_channel.h"
#include "control_plane/shadow_sink.h"
#include "penstock/v1/shadow.grpc.pb.h"

namespace penstock::control_plane {

// Where the comparer is that routes name: ":port" is one beside the head, which is at `control`
// (host:port). Empty: nowhere.
std::string find_comparer(const std::string& told, const std::string& control);

class ShadowClient final : public ShadowSink {
 public:
  static constexpr std::size_t kMostPairs = 1024;
  static constexpr std::size_t kMostBytes = 32U << 20U;
  static constexpr unsigned kMostRefusals = 3;       // of one batch
  static constexpr std::size_t kMostQuestions = 64;  // of a stream, without a reply

  // Who says what is told, and which of its processes.
  struct Teller {
    std::string gateway_id;
    std::string instance;
  };
  // How to reach the comparer at an address.
  using Connect = std::function<HeadChannel(const std::string& address)>;

  // Who asks a question, and calls reply() for it; never waits.
  using OnQuestion = std::function<void(v1::ShadowQuestion question)>;

  ShadowClient(Teller teller, Connect connect, admission::ShadowBook& book, OnQuestion ask);
  ShadowClient(const ShadowClient&) = delete;
  ShadowClient& operator=(const ShadowClient&) = delete;
  ~ShadowClient() override;

  void start();
  void stop();  // idempotent; what is not acknowledged is lost
  // Where it is now; empty: nowhere, and what waits for it is dropped. Any thread.
  void point_at(const std::string& address);

  bool is_there() const override { return is_there_.load(std::memory_order_relaxed); }
  bool has_room() const override { return has_room_.load(std::memory_order_relaxed); }
  void offer(v1::ShadowPair pair, std::shared_ptr<const std::string> body) override;
  void reply(v1::ShadowReply reply) override;

 private:
  using Stream = grpc::ClientReaderWriter<v1::ShadowBatch, v1::ShadowRecorded>;
  struct Offered {
    v1::ShadowPair pair;
    std::shared_ptr<const std::string> body;
    std::size_t bytes = 0;
  };
  struct Sent {
    v1::ShadowBatch batch;
    std::size_t bytes = 0;  // of its pairs
  };
  using Told = std::map<std::pair<std::string, std::size_t>, std::uint64_t>;  // rule and outcome

  void run();
  bool record_until_broken();
  void write_all(Stream& stream);
  bool write_replies(Stream& stream);
  bool write_again(Stream& stream);
  std::shared_ptr<const Sent> next_batch(Told& told);
  void keep(std::shared_ptr<const Sent> sent, std::uint64_t dropped);
  void count_dropped(const Sent& sent);
  void add_counts(Told& told, v1::ShadowBatch& batch) const;
  void hear_all(Stream& stream);
  void take(v1::ShadowQuestion question);
  void acknowledge(std::uint64_t number);
  void drop_all();
  void forget_first();
  bool note_end(const grpc::Status& status);
  bool wait(std::chrono::milliseconds duration);  // false if stopping

  const Teller teller_;
  const Connect connect_;
  admission::ShadowBook& book_;
  const OnQuestion ask_;
  std::atomic<bool> is_there_{false};
  std::atomic<bool> has_room_{true};  // false from a pair that was dropped until others have gone

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool stopping_ = false;
  bool broken_ = false;  // the stream that is written to
  std::string address_;
  std::deque<Offered> offered_;
  std::deque<std::shared_ptr<const Sent>> sent_;  // and not acknowledged, by number
  std::set<std::string> asked_;                   // questions of the stream, without a reply
  std::vector<v1::ShadowReply> replies_;          // to be written
  std::size_t pairs_ = 0;                         // of both
  std::size_t bytes_ = 0;
  std::uint64_t number_ = 0;   // of the last batch
  std::uint64_t dropped_ = 0;  // times that all was
  bool heard_ = false;         // on the stream
  unsigned refused_ = 0;       // times, since anything was heard
  grpc::ClientContext* call_ = nullptr;
  std::thread thread_;
};

}  // namespace penstock::control_plane
