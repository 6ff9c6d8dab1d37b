#include "token_queue.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace penstock::replica {
namespace {

constexpr std::string_view kEventStream = "text/event-stream";

}  // namespace

void News::add_piece(size_t bytes, uint32_t events, uint32_t group_count, uint32_t tokens) {
  pieces.push_back({static_cast<uint32_t>(bytes), events, group_count, tokens});
}

void News::clear() {
  has_head = false;
  body.clear();
  pieces.clear();
  groups.clear();
  end.Clear();
}

TokenQueue::TokenQueue(uint64_t credit_bytes, size_t capacity_bytes)
    : capacity_(capacity_bytes),
      limited_(credit_bytes > 0),
      credit_(static_cast<int64_t>(std::min<uint64_t>(credit_bytes, INT64_MAX))) {}

TokenQueue::Pushed TokenQueue::push(News& news) {
  std::lock_guard lock(mutex_);
  if (closed_ || has_end_ || (cancelled_ && !news.ends())) {
    news.clear();
    return {.closed = true};
  }
  if (cancelled_) {
    has_end_ = true;
    end_.Swap(&news.end);
    tell_end_as_cancelled();
    news.clear();
    return {.became_ready = list_if_sendable()};
  }
  if (news.has_head) {
    has_head_ = true;
    head_ = news.head;
    unary_ = !head_.content_type().starts_with(kEventStream);
  }
  body_.append(news.body);
  pieces_.insert(pieces_.end(), news.pieces.begin(), news.pieces.end());
  std::move(news.groups.begin(), news.groups.end(), std::back_inserter(groups_));
  if (news.ends()) {
    has_end_ = true;
    end_.Swap(&news.end);
  }
  news.clear();
  Pushed pushed;
  pushed.became_ready = list_if_sendable();
  pushed.full = !has_end_ && held() >= capacity_;
  producer_stopped_ = producer_stopped_ || pushed.full;
  return pushed;
}

bool TokenQueue::add_credit(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const int64_t space = INT64_MAX - std::max<int64_t>(credit_, 0);
  credit_ += static_cast<int64_t>(std::min<uint64_t>(bytes, static_cast<uint64_t>(space)));
  return list_if_sendable();
}

TokenQueue::Taken TokenQueue::take(v1::CallEvent* event, size_t budget) {
  std::lock_guard lock(mutex_);
  Taken taken;
  listed_ = false;
  if (!sendable()) return taken;
  taken.anything = true;
  const bool has_pieces = first_piece_ < pieces_.size();
  if (has_head_ && (has_pieces || end_.has_finished())) {
    event->mutable_head()->Swap(&head_);
    has_head_ = false;
  }
  if (has_pieces) take_pieces(event->mutable_chunk(), budget, &taken);
  if (has_end_ && pieces_.empty()) take_end(event, &taken);
  if (producer_stopped_ && held() <= capacity_ / 2) {
    producer_stopped_ = false;
    taken.room = true;
  }
  taken.more = list_if_sendable();
  return taken;
}

bool TokenQueue::cancel() {
  std::lock_guard lock(mutex_);
  if (closed_ || cancelled_) return false;
  cancelled_ = true;
  producer_stopped_ = false;
  has_head_ = false;
  drop_all();
  if (has_end_) tell_end_as_cancelled();
  return list_if_sendable();
}

void TokenQueue::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  drop_all();
}

void TokenQueue::drop_all() {
  std::string().swap(body_);
  body_begin_ = 0;
  std::vector<Piece>().swap(pieces_);
  std::vector<v1::TokenGroup>().swap(groups_);
  first_piece_ = 0;
}

bool TokenQueue::sendable() const {
  if (closed_) return false;
  if (first_piece_ < pieces_.size()) return !limited_ || credit_ > 0;
  return has_end_;
}

bool TokenQueue::list_if_sendable() {
  if (listed_ || !sendable()) return false;
  listed_ = true;
  return true;
}

void TokenQueue::take_pieces(v1::Chunk* chunk, size_t budget, Taken* taken) {
  const Piece next = next_stretch(budget);
  chunk->set_body(body_.data() + body_begin_, next.bytes);
  chunk->set_events(next.events);
  chunk->set_tokens(next.tokens);
  for (size_t i = 0; i < next.groups; ++i) chunk->add_groups()->Swap(&groups_[i]);
  drop_taken_pieces(next.bytes, next.groups);
  taken->bytes = next.bytes;
}

// What a piece counts for goes with its last part.
Piece TokenQueue::next_stretch(size_t budget) {
  Piece next;
  while (first_piece_ < pieces_.size() && (next.bytes == 0 || next.bytes < budget) &&
         (!limited_ || credit_ > 0)) {
    Piece& piece = pieces_[first_piece_];
    const size_t part = unary_ ? part_of(piece, budget - next.bytes) : piece.bytes;
    next.bytes += static_cast<uint32_t>(part);
    piece.bytes -= static_cast<uint32_t>(part);
    if (limited_) credit_ -= static_cast<int64_t>(part);
    if (piece.bytes > 0) break;
    next.groups += piece.groups;
    next.events += piece.events;
    next.tokens += piece.tokens;
    ++first_piece_;
  }
  return next;
}

// What a frame and the credit, which there is, have room for.
size_t TokenQueue::part_of(const Piece& piece, size_t room) const {
  const auto credit = limited_ ? static_cast<size_t>(credit_) : room;
  return std::min({static_cast<size_t>(piece.bytes), room, credit});
}

void TokenQueue::drop_taken_pieces(size_t bytes, size_t groups) {
  body_begin_ += bytes;
  // A large body would be moved for each of its parts.
  if (body_begin_ >= held()) {
    body_.erase(0, body_begin_);
    body_begin_ = 0;
  }
  groups_.erase(groups_.begin(), groups_.begin() + static_cast<std::ptrdiff_t>(groups));
  if (first_piece_ == pieces_.size()) {
    pieces_.clear();
    first_piece_ = 0;
  }
}

void TokenQueue::tell_end_as_cancelled() {
  v1::Usage usage;
  if (end_.has_finished()) usage.Swap(end_.mutable_finished()->mutable_usage());
  if (end_.has_failed()) usage.Swap(end_.mutable_failed()->mutable_usage());
  if (end_.has_cancelled()) usage.Swap(end_.mutable_cancelled()->mutable_usage());
  end_.Clear();
  end_.mutable_cancelled()->mutable_usage()->Swap(&usage);
}

void TokenQueue::take_end(v1::CallEvent* event, Taken* taken) {
  if (end_.has_finished()) event->mutable_finished()->Swap(end_.mutable_finished());
  if (end_.has_failed()) event->mutable_failed()->Swap(end_.mutable_failed());
  if (end_.has_cancelled()) event->mutable_cancelled()->Swap(end_.mutable_cancelled());
  closed_ = true;
  taken->ended = true;
}

}  // namespace penstock::replica
