// How a replica was chosen for a request: which were looked at, and why each was taken or was not.
// A value that its request keeps and the choice fills, so that a look costs no memory of its own.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::routing {

enum class Verdict : std::uint8_t {
  kTaken,
  kBusier,
  kFull,
  kNotReady,       // by the routes, or by its own word
  kDoubted,        // something speaks against it
  kTried,          // the request was sent there before, or may not be
  kUnequal,        // it cannot go on with the answer
  kOtherRevision,  // than the request is for
  kNoSlot,         // it takes no adapters
  kDraining,
  kPrefill,  // it has room, which is kept for the prefill of others
};
std::string_view name(Verdict verdict);

// What chooses besides policies.
inline constexpr std::string_view kByAdapter = "adapter";  // of replicas some of which take none
inline constexpr std::string_view kByProgram = "program";
inline constexpr std::string_view kByResume = "resume";  // of those that can go on with an answer

struct Look {
  std::string_view replica;
  std::uint32_t load = 0;  // calls that it had, as the choice counts them
  Verdict verdict = Verdict::kTaken;
};

class Pick {
 public:
  static constexpr std::size_t kMost = 8;

  std::string_view policy;  // static; empty: nobody has chosen
  std::uint32_t more = 0;   // others of the deployment, which were not looked at or are left out

  // Forgets what it says, and keeps the memory.
  void begin(std::string_view by) {
    policy = by;
    more = 0;
    count_ = 0;
    names_.clear();
  }
  // All that the other one says, which then says nothing.
  void take(Pick& other) {
    policy = other.policy;
    more = other.more;
    count_ = other.count_;
    names_.swap(other.names_);
    for (std::size_t i = 0; i < count_; ++i) seen_[i] = other.seen_[i];
    other.begin({});
  }
  // Does nothing where there is no room for another.
  void add(std::string_view replica, std::uint32_t load, Verdict verdict) {
    if (count_ == kMost) return;
    names_ += replica;
    seen_[count_++] = {static_cast<std::uint32_t>(names_.size()), load, verdict};
  }
  std::size_t size() const { return count_; }
  Look look(std::size_t i) const {
    const std::uint32_t begin = i == 0 ? 0 : seen_[i - 1].name_end;
    return {std::string_view(names_).substr(begin, seen_[i].name_end - begin), seen_[i].load,
            seen_[i].verdict};
  }

 private:
  struct Seen {
    std::uint32_t name_end;  // in names_
    std::uint32_t load;
    Verdict verdict;
  };

  std::string names_;
  std::size_t count_ = 0;
  std::array<Seen, kMost> seen_;  // the first count_
};

}  // namespace penstock::routing
