// Who of the waiting goes next, of one deployment in one gateway. Not for several threads at once;
// callers pass the time.
//
// Priorities first: high before normal before low; while others wait, too, low gets a tenth of the
// work. Within a priority each tenant has a virtual counter of the work that was started for it
// while somebody waited, and the tenant with the least goes next; a tie is for the one whose last
// turn is longest ago. Within a tenant and priority: first come, first served.
//
// A tenant that comes back begins level with the least of those that wait, so that nobody saves up
// turns, and while nobody waits all counters are forgotten, so that nobody pays for work that
// nobody else wanted. A counter is charged what a request is estimated at and corrected once the
// truth is known.
//
// start, remove, charge and settle cost O(log tenants that wait), next as much for each entry that
// it looks at, push and work_before O(tenants of which some go before).
#pragma once

#include <algorithm>
#include <array>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/priority.h"

namespace penstock::admission {

// What a tenant was charged for one request, and when in the queue's own count of turns.
struct Charge {
  std::uint64_t work = 0;
  std::uint64_t turn = 0;
};

// One that waits. Its owner keeps it where it is until start() or remove() has taken it out.
struct QueueEntry {
  std::string tenant;  // empty: requests without a key, together
  base::Priority priority = base::Priority::kNormal;
  std::uint64_t work = 0;  // TokenEstimate::work()
  base::SteadyTime since{};
  Charge charged = {};  // by start(); by its owner, where it ran without having waited

  QueueEntry() = default;
  QueueEntry(const QueueEntry&) = delete;
  QueueEntry& operator=(const QueueEntry&) = delete;
  bool waits() const { return in_line.is_linked(); }

  // The queue's own.
  std::uint64_t before = 0;   // work of those that were to go before it when it came
  std::uint64_t started = 0;  // started_ then
  boost::intrusive::list_member_hook<> in_line;
};

class FairQueue {
 public:
  FairQueue() = default;
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  void push(QueueEntry& entry);

  // The first in order for which fits(entry); null: none. Looks at no more than 64 of a priority,
  // and at no more than 32 of one tenant among them: those that fit nowhere hold up no others.
  template <class Fits>
  QueueEntry* next(const Fits& fits) const {
    Walk walk(*this);
    for (QueueEntry* entry = walk.next(); entry != nullptr; entry = walk.next()) {
      if (fits(static_cast<const QueueEntry&>(*entry))) return entry;
    }
    return nullptr;
  }

  // All that wait, in no order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Class& in : classes_) {
      for (const Line& line : in.waiting) std::ranges::for_each(line.entries, visit);
    }
  }

  // Leaves to run: its tenant is charged its work.
  void start(QueueEntry& entry);
  // Leaves without having run.
  void remove(QueueEntry& entry);
  // Runs without having waited.
  Charge charge(std::string_view tenant, base::Priority priority, std::uint64_t work);
  // It is over, and was so much work. Once for each charge.
  void settle(std::string_view tenant, base::Priority priority, const Charge& charged,
              std::uint64_t true_work);

  using ByPriority = std::array<std::uint32_t, 3>;
  // How many go before it as things stand: of those that next() looks at. Of more, all others.
  ByPriority before(const QueueEntry& entry) const;
  // How many wait.
  ByPriority waiting() const;

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  // The work that will start before one that came now: of those that wait and would go before it,
  // and as much more as went before the tenant's last ones though it came later, of other tenants
  // and higher priorities. Where a flood waits, that may be most of it.
  std::uint64_t work_before(std::string_view tenant, base::Priority priority) const;

 private:
  static constexpr std::size_t kClasses = 3;
  static constexpr std::size_t kLooks = 64;
  static constexpr std::size_t kLooksOfOne = 32;

  using Entries = boost::intrusive::list<
      QueueEntry, boost::intrusive::member_hook<QueueEntry, boost::intrusive::list_member_hook<>,
                                                &QueueEntry::in_line>>;

  // A tenant in one priority. Lives while it has entries, or while its counter says anything.
  struct Line {
    std::string tenant;
    Entries entries;
    std::uint64_t work = 0;     // of the entries
    std::uint64_t counter = 0;  // virtual: work started while somebody waited
    std::uint64_t turn = 0;     // when it last had its turn or came: ties
    std::uint64_t since = 0;    // the turn at which it became known
    double foreseen = 0;        // work before its entries as they came, the newest counting most
    double came = 0;            // work that did start before them
    boost::intrusive::set_member_hook<> order;  // in `waiting` or `idle`

    double overtaken() const;                  // came for each foreseen
    void note(double before, double started);  // of one that started
  };
  struct BeforeInTurn {
    bool operator()(const Line& a, const Line& b) const {
      return a.counter != b.counter ? a.counter < b.counter : a.turn < b.turn;
    }
  };
  using Lines = boost::intrusive::multiset<
      Line, boost::intrusive::member_hook<Line, boost::intrusive::set_member_hook<>, &Line::order>,
      boost::intrusive::compare<BeforeInTurn>>;

  // All tenants of one priority.
  struct Class {
    Lines waiting;  // with entries, next one first
    Lines idle;     // without, least counter first
    std::map<std::string, Line, std::less<>> lines;
    std::uint64_t work = 0;   // of all entries
    std::uint32_t count = 0;  // of these
    std::uint64_t since = 0;  // the turn at which the first of those that wait came

    ~Class();
    std::uint64_t level() const;  // where a newcomer begins
    void forget();                // lines that say nothing any more
  };

  // Goes through the entries in the order in which they would be started, one after the other.
  class Walk {
   public:
    explicit Walk(const FairQueue& queue);
    QueueEntry* next();

   private:
    struct Cursor {  // on one line
      Entries::const_iterator at, end;
      std::uint64_t counter = 0, turn = 0;  // as they would stand then
      std::size_t looks = 0;
    };
    void open(const Class& in);
    Cursor* first();
    QueueEntry* next_in_class();

    const FairQueue& queue_;
    std::array<std::size_t, kClasses> order_;
    std::size_t classes_ = 0;  // of order_, gone through or begun
    const Class* class_ = nullptr;
    Lines::const_iterator unopened_;
    std::array<Cursor, kLooks> cursors_;  // a look opens one at most
    std::size_t open_ = 0;
    std::size_t looks_ = 0;
    std::uint64_t turn_;
  };

  Class& class_of(base::Priority priority) { return classes_[static_cast<std::size_t>(priority)]; }
  const Class& class_of(base::Priority priority) const {
    return classes_[static_cast<std::size_t>(priority)];
  }
  Line& line_for(Class& in, std::string_view tenant);
  static void move_counter(Class& in, Line& line, std::uint64_t to);
  static std::uint64_t work_before_in(const Class& in, std::string_view tenant);
  void unlink(QueueEntry& entry);
  std::uint64_t waiting_before(std::string_view tenant, base::Priority priority) const;
  void count_for_low(base::Priority priority, std::int64_t work);
  bool others_wait_beside_low() const;
  bool low_is_due() const;

  std::array<Class, kClasses> classes_;
  std::size_t size_ = 0;  // that wait
  std::uint64_t turns_ = 0;
  std::uint64_t started_ = 0;  // all work that ever did
  // Ninths of work that low priority has not had of its tenth; below 0: that it had too much.
  std::int64_t owed_to_low_ = 0;
};

}  // namespace penstock::admission
