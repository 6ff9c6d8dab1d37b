// What the client of a stream has of it, as another replica needs it to go on: the tokens of the
// events that were written to it, and the request's body where that is large. One for each answer
// that could go on elsewhere, for as long as it runs; its I/O thread only.
//
// Bounded for each stream, and over all by a budget, which it takes from when its room is used up,
// twice as much each time: no event pays for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "runtime/body_budget.h"
#include "upstream/group_record.h"
#include "upstream/large_body.h"
#include "upstream/resume.h"
#include "upstream/token_groups.h"

namespace penstock::proxy {

class DeliveredTokens {
 public:
  static constexpr size_t kMostBytes = 1UL << 20U;  // a quarter of a million tokens, one by one

  explicit DeliveredTokens(runtime::BodyBudget& budget) : budget_(budget), room_(budget) {}

  // Keeps a body, too. False: there is no room for it. Bodies have half of the budget at most: a
  // few of them take as much as the tokens of thousands of streams.
  bool keep(upstream::SharedBody body);
  // Null: it was not large, and its request has it.
  const upstream::SharedBody& body() const { return body_; }

  // These groups' events are written to the client. False: there is no room for them, and what is
  // held is of no use any more.
  bool note(const upstream::TokenGroupsView& groups) {
    if (groups.bytes.size() > static_cast<size_t>(end_ - at_) && !grow(groups.bytes.size())) {
      return false;
    }
    at_ = upstream::record_groups(groups, at_);
    return true;
  }

  // The answer begins once more: its client has nothing of it.
  void begin_again() { at_ = record_.get(); }
  // A record of all of them, valid until the next is noted.
  std::string_view record() const { return {record_.get(), size()}; }
  size_t tokens() const;  // of them; looks at each

 private:
  size_t size() const { return static_cast<size_t>(at_ - record_.get()); }
  bool grow(size_t more);

  char* at_ = nullptr;   // where the next goes, within the record
  char* end_ = nullptr;  // of its room
  std::unique_ptr<char[]> record_;
  runtime::BodyBudget& budget_;
  runtime::BodyShare room_;  // that the record and the body take
  upstream::SharedBody body_;
};

}  // namespace penstock::proxy
