#include "python_handler.h"

#include <stdexcept>
#include <string>

#include "delivery.h"
#include "switchboard.h"

namespace penstock::replica {
namespace {

void to_news(v1::CallEvent* event, News* news) {
  if (event->has_head()) {
    news->has_head = true;
    news->head.Swap(event->mutable_head());
  }
  if (event->has_chunk()) {
    v1::Chunk* chunk = event->mutable_chunk();
    news->body.swap(*chunk->mutable_body());
    news->add_piece(news->body.size(), chunk->events(),
                    static_cast<uint32_t>(chunk->groups_size()));
    for (v1::TokenGroup& group : *chunk->mutable_groups()) news->groups.push_back(std::move(group));
  }
  if (event->has_finished()) news->end.mutable_finished()->Swap(event->mutable_finished());
  if (event->has_failed()) news->end.mutable_failed()->Swap(event->mutable_failed());
}

}  // namespace

void PythonHandler::start(std::span<const CallPtr> calls) {
  for (const CallPtr& call : calls) {
    call->aboard = true;
    inbox_->post(Inbox::Kind::kStart, call->key, call->request.SerializeAsString());
    v1::CallRequest().Swap(&call->request);
  }
}

void PythonHandler::cancel(const CallPtr& call) { inbox_->post(Inbox::Kind::kCancel, call->key); }

void PythonHandler::room(std::span<const CallPtr> calls) {
  for (const CallPtr& call : calls) inbox_->post(Inbox::Kind::kRoom, call->key);
}

std::vector<uint64_t> write_many(Switchboard* switchboard, std::span<const WrittenEvent> events) {
  std::vector<uint64_t> full;
  Delivery delivery;
  v1::CallEvent event;
  News news;
  for (const auto& [key, bytes] : events) {
    const CallPtr call = switchboard->find(key);
    if (!call) continue;
    if (!event.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      throw std::invalid_argument("write_many: not a serialised CallEvent for call " +
                                  std::to_string(key));
    }
    to_news(&event, &news);
    if (delivery.push(call, news).full) full.push_back(key);
  }
  return full;
}

}  // namespace penstock::replica
