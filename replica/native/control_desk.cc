#include "control_desk.h"

#include <utility>

namespace penstock::replica {
namespace {

const grpc::Status& stopping() {
  static const grpc::Status status(grpc::StatusCode::UNAVAILABLE, "the replica is stopping");
  return status;
}

}  // namespace

void ControlDesk::file(Inbox::Kind kind, std::string request, Finish finish) {
  std::unique_lock lock(mutex_);
  if (closed_) {
    lock.unlock();
    finish(stopping(), {});
    return;
  }
  const uint64_t key = next_key_++;
  waiting_.emplace(key, std::move(finish));
  lock.unlock();
  inbox_->post(kind, key, std::move(request));
}

void ControlDesk::reply(uint64_t key, std::string_view bytes) {
  settle(key, grpc::Status::OK, bytes);
}

void ControlDesk::refuse(uint64_t key, const std::string& message) {
  settle(key, grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, message), {});
}

void ControlDesk::settle(uint64_t key, const grpc::Status& status, std::string_view bytes) {
  Finish finish;
  {
    std::lock_guard lock(mutex_);
    const auto found = waiting_.find(key);
    if (found == waiting_.end()) return;
    finish = std::move(found->second);
    waiting_.erase(found);
  }
  finish(status, bytes);
}

void ControlDesk::close() {
  std::unordered_map<uint64_t, Finish> waiting;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    waiting.swap(waiting_);
  }
  for (const auto& [key, finish] : waiting) finish(stopping(), {});
}

}  // namespace penstock::replica
