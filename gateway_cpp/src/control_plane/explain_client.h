// Lets the head ask about requests that have ended: a stream that stays open, on which questions
// come and what is kept of them goes back. Two threads of its own; a head that is away costs a try
// each second, one that knows no such stream one each minute.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control_plane/head_channel.h"
#include "observe/record_store.h"
#include "penstock/v1/explain.pb.h"

namespace penstock::control_plane {

class ExplainClient {
 public:
  // What waits to be answered of a stream; more are read when some are.
  static constexpr std::size_t kMostQuestions = 64;
  static constexpr std::chrono::milliseconds kPatience{2'000};  // the head's

  // `instance`: tells this process from those before it. The store outlives the client. `patience`:
  // a question that has waited so long is answered with nothing, as nobody waits for it any more.
  ExplainClient(std::string gateway_id, std::string instance, HeadChannel head,
                observe::RecordStore& records, std::chrono::milliseconds patience = kPatience);
  ExplainClient(const ExplainClient&) = delete;
  ExplainClient& operator=(const ExplainClient&) = delete;
  ~ExplainClient();

  void start();  // does nothing without a head
  void stop();   // idempotent

 private:
  using Stream = grpc::ClientReaderWriter<v1::ExplainReply, v1::ExplainQuestion>;
  using Tails = std::map<std::uint64_t, std::shared_ptr<observe::RecordTail>>;  // by question

  struct Asked {
    v1::ExplainQuestion question;
    std::chrono::steady_clock::time_point at;
  };
  struct Work {
    std::optional<Asked> asked;
    bool tails = false;  // what they have is to be told
  };

  void run();
  std::chrono::milliseconds explain_until_broken();
  void hear_all(Stream& stream);
  std::optional<Work> next_work(std::chrono::steady_clock::time_point due);
  void answer_all(Stream& stream);
  bool answer(Stream& stream, const Asked& asked, Tails& tails);
  void give_up(grpc::ClientContext& context);
  bool tell(Stream& stream, std::uint64_t question, const std::vector<std::string>& records);
  bool tell_tail(Stream& stream, std::uint64_t question, observe::RecordTail& tail);
  void wake();
  bool wait(std::chrono::milliseconds duration);  // false if stopping

  const std::string gateway_id_;
  const std::string instance_;
  const HeadChannel head_;
  observe::RecordStore& records_;
  const std::chrono::milliseconds patience_;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool stopping_ = false;
  bool broken_ = false;  // the stream, or it is given up
  bool news_ = false;    // of a tail
  std::deque<Asked> questions_;
  grpc::ClientContext* call_ = nullptr;
  std::thread thread_;
};

}  // namespace penstock::control_plane
