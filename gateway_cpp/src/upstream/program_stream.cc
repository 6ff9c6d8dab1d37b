#include "upstream/program_stream.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "upstream/replica_connection.h"

namespace penstock::upstream {
namespace {

constexpr const char* kRoute = "/penstock.v1.Router/Route";
// It is on this machine: what does not answer at once hangs.
constexpr ConnectionPatience kBesideUs{.connect = std::chrono::milliseconds(1'000),
                                       .silence = std::chrono::milliseconds(1'000),
                                       .backlog_bytes = 1UL << 20U};
// More than that is not kept for one that does not read.
constexpr uint64_t kMostUnsentBytes = 64UL << 20U;

class Connected final : public ProgramStream,
                        private ReplicaConnection::Owner,
                        public std::enable_shared_from_this<Connected> {
 public:
  Connected(asio::io_context& io, ProgramStream::Owner& owner) : io_(io), owner_(&owner) {}
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;
  ~Connected() override { close(); }

  void connect(const std::string& address, const std::string& token) {
    const CallTarget target{.authority = address,
                            .path = kRoute,
                            .token = token,
                            .most_message_bytes = kMostProgramFrameBytes};
    connection_ = ReplicaConnection::start(io_, target, *this, kBesideUs);
  }
  v1::GatewayFrame& outgoing() override {
    flush_later();
    return outgoing_;
  }
  bool closed_to_asks() const override {
    const bool is_full = connection_->added() - connection_->handed_over() > kMostUnsentBytes;
    return owner_ == nullptr || connection_->going_away() || is_full;
  }
  void close() override {
    owner_ = nullptr;
    if (connection_) connection_->close();
  }

 private:
  bool on_message(std::string_view message) override {
    frame_.Clear();
    const bool is_read = frame_.ParseFromArray(message.data(), static_cast<int>(message.size()));
    return is_read && owner_ != nullptr && owner_->on_frame(frame_);
  }
  void on_turn() override {
    const auto self = shared_from_this();
    if (owner_ != nullptr) owner_->on_turn();
  }
  void on_end(std::string_view why) override {
    const auto self = shared_from_this();
    if (auto* owner = std::exchange(owner_, nullptr)) owner->on_end(why);
  }
  void flush_later() {
    if (std::exchange(flush_posted_, true)) return;
    asio::post(io_, [self = shared_from_this()] { self->flush(); });
  }
  void flush() {
    flush_posted_ = false;
    const size_t size = outgoing_.ByteSizeLong();
    if (owner_ == nullptr || size == 0) return;
    auto* room = reinterpret_cast<uint8_t*>(connection_->add_message(static_cast<uint32_t>(size)));
    outgoing_.SerializeWithCachedSizesToArray(room);
    outgoing_.Clear();
    connection_->flush();
  }

  asio::io_context& io_;
  ProgramStream::Owner* owner_;  // null: it has closed or heard of the end
  std::shared_ptr<ReplicaConnection> connection_;
  v1::GatewayFrame outgoing_;
  v1::ProgramFrame frame_;
  bool flush_posted_ = false;
};

}  // namespace

std::shared_ptr<ProgramStream> connect_to_program(asio::io_context& io, const std::string& address,
                                                  const std::string& token,
                                                  ProgramStream::Owner& owner) {
  auto stream = std::make_shared<Connected>(io, owner);
  stream->connect(address, token);
  return stream;
}

}  // namespace penstock::upstream
