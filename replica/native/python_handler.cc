#include "python_handler.h"

#include "delivery.h"
#include "switchboard.h"

namespace penstock::replica {
namespace {

void to_news(Written* written, News* news) {
  if (!written->other) {
    news->body.assign(written->body);
    news->add_piece(news->body.size(), written->events,
                    static_cast<uint32_t>(written->groups.size()), written->tokens);
    news->groups.swap(written->groups);
    return;
  }
  v1::CallEvent& event = *written->other;
  news->has_head = event.has_head();
  if (news->has_head) news->head.Swap(event.mutable_head());
  event.clear_head();
  news->end.Swap(&event);
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

Delivered write_many(Switchboard* switchboard, std::span<Written> batch) {
  Delivered delivered;
  Delivery delivery;
  News news;
  for (Written& written : batch) {
    const CallPtr call = switchboard->find(written.key);
    if (!call) {
      delivered.gone.push_back(written.key);
      continue;
    }
    to_news(&written, &news);
    const TokenQueue::Pushed pushed = delivery.push(call, news);
    if (pushed.full) delivered.full.push_back(written.key);
    if (pushed.closed) delivered.gone.push_back(written.key);
  }
  return delivered;
}

}  // namespace penstock::replica
