// A batch of pushes, so that everything that one step of an engine produced leaves together: the
// outlets are flushed once, at the end. Lives on the stack of one thread; declare it before any
// lock that must not be held while messages are sent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "call.h"

namespace penstock::replica {

class Delivery {
 public:
  Delivery() = default;
  ~Delivery() { flush(); }
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  TokenQueue::Pushed push(const CallPtr& call, News& news) {
    const TokenQueue::Pushed pushed = call->answer.push(news);
    if (pushed.became_ready) list(call);
    return pushed;
  }

  void fail(const CallPtr& call, const v1::ErrorDetail& error, const v1::Usage& usage = {}) {
    News news;
    *news.end.mutable_failed()->mutable_error() = error;
    *news.end.mutable_failed()->mutable_usage() = usage;
    push(call, news);
  }

  // Tells the client what the call cost that it cancelled.
  void end_cancelled(const CallPtr& call, const v1::Usage& usage) {
    News news;
    *news.end.mutable_cancelled()->mutable_usage() = usage;
    push(call, news);
  }

  void cancel(const CallPtr& call) {
    if (call->answer.cancel()) list(call);
  }

  void add_credit(const CallPtr& call, uint64_t bytes) {
    if (call->answer.add_credit(bytes)) list(call);
  }

  void flush() {
    for (const auto& outlet : outlets_) outlet->flush();
    outlets_.clear();
  }

 private:
  void list(const CallPtr& call) {
    if (call->outlet->ready(call)) outlets_.push_back(call->outlet);
  }

  std::vector<std::shared_ptr<Outlet>> outlets_;
};

}  // namespace penstock::replica
