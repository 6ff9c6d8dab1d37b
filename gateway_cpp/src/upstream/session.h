// One Inference.Session between one I/O thread and one replica, carrying all their calls: frames of
// starts, cancels and credit go out, frames with the news of many calls come in. Its end is the
// first sign of the replica's death and fails every call on it.
//
// A Session lives on its I/O thread and is owned by that thread's ReplicaPool (calls keep it
// alive). gRPC's threads meet it only in the Stream, where they leave frames under a lock and post
// once.
#pragma once

#include <grpcpp/channel.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "penstock/v1/inference.pb.h"
#include "upstream/call.h"

namespace penstock::upstream {

class Session final : public CallLink, public std::enable_shared_from_this<Session> {
 public:
  // credit_bytes: window of each call; 0: unlimited.
  static std::shared_ptr<Session> start(asio::io_context& io,
                                        const std::shared_ptr<grpc::Channel>& channel,
                                        std::string replica_id, uint64_t credit_bytes);
  // Cancels what still runs and waits until gRPC has let go: a few milliseconds at most.
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::unique_ptr<Call> open(v1::CallRequest request, Signal& news);

  bool ended() const { return ended_; }
  // The replica has spoken on this session.
  bool heard() const { return heard_; }
  size_t running() const { return calls_.size(); }
  // Asks for the end, which then comes as any other end does.
  void close();

  void grant(uint64_t call_id, uint64_t bytes) override;
  void release(Call& call) override;

 private:
  class Stream;
  struct Frame;

  Session(asio::io_context& io, std::string replica_id, uint64_t credit_bytes);
  void drain();
  void deliver(v1::ServerFrame& frame);
  void fail_all();
  CallFailure connection_failure() const;
  void wake_listed();
  void list(Call& call);
  void flush_later();

  asio::io_context& io_;
  const std::string replica_id_;
  const uint64_t credit_bytes_;
  std::unique_ptr<Stream> stream_;
  std::unordered_map<uint64_t, Call*> calls_;
  std::vector<Call*> to_wake_;  // null: released in the meantime
  std::vector<std::unique_ptr<Frame>> frames_;
  uint64_t last_id_ = 0;
  bool flush_posted_ = false;
  bool heard_ = false;
  bool ended_ = false;
};

}  // namespace penstock::upstream
