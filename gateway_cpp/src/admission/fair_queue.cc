#include "admission/fair_queue.h"

#include <algorithm>

namespace penstock::admission {
namespace {

constexpr std::size_t kLow = static_cast<std::size_t>(base::Priority::kLow);
constexpr std::size_t kNormal = static_cast<std::size_t>(base::Priority::kNormal);
constexpr std::size_t kHigh = static_cast<std::size_t>(base::Priority::kHigh);
// Of ten parts of the work, low priority gets one and the others nine.
constexpr std::int64_t kOthersParts = 9;

// Starts that the measure of overtaking looks back, about, and its bounds.
constexpr double kStartsLookedBack = 32;
constexpr double kLeastOvertaken = 0.25;
constexpr double kMostOvertaken = 8;

std::int64_t as_signed(std::uint64_t work) { return static_cast<std::int64_t>(work); }

}  // namespace

FairQueue::Class::~Class() {
  waiting.clear();
  idle.clear();
}

std::uint64_t FairQueue::Class::level() const {
  return waiting.empty() ? 0 : waiting.begin()->counter;
}

void FairQueue::Class::forget() {
  while (!idle.empty() && (waiting.empty() || idle.begin()->counter <= level())) {
    const Line& line = *idle.begin();
    idle.erase(idle.begin());
    lines.erase(lines.find(line.tenant));
  }
}

double FairQueue::Line::overtaken() const {
  return foreseen > 0 ? std::clamp(came / foreseen, kLeastOvertaken, kMostOvertaken) : 1;
}

void FairQueue::Line::note(double before, double started) {
  if (before <= 0) return;
  if (foreseen <= 0) foreseen = came = before;  // one beginning as foreseen
  foreseen += before - foreseen / kStartsLookedBack;
  came += started - came / kStartsLookedBack;
}

FairQueue::Line& FairQueue::line_for(Class& in, std::string_view tenant) {
  const auto found = in.lines.find(tenant);
  if (found != in.lines.end()) return found->second;
  Line& line = in.lines[std::string(tenant)];
  line.tenant = tenant;
  line.counter = in.level();
  line.since = ++turns_;
  in.idle.insert(line);
  return line;
}

void FairQueue::push(QueueEntry& entry) {
  entry.before = waiting_before(entry.tenant, entry.priority);
  entry.started = started_;
  Class& in = class_of(entry.priority);
  if (in.waiting.empty()) in.since = ++turns_;
  Line& line = line_for(in, entry.tenant);
  if (line.entries.empty()) {
    in.idle.erase(in.idle.iterator_to(line));
    line.counter = std::max(line.counter, in.level());
    line.turn = ++turns_;
    in.waiting.insert(line);
  }
  entry.work = std::max<std::uint64_t>(entry.work, 1);  // what is free could go before all others
  line.entries.push_back(entry);
  line.work += entry.work;
  in.work += entry.work;
  ++in.count;
  ++size_;
}

void FairQueue::unlink(QueueEntry& entry) {
  Class& in = class_of(entry.priority);
  Line& line = in.lines.find(entry.tenant)->second;
  line.entries.erase(line.entries.iterator_to(entry));
  line.work -= entry.work;
  in.work -= entry.work;
  --in.count;
  --size_;
  if (line.entries.empty()) {
    in.waiting.erase(in.waiting.iterator_to(line));
    in.idle.insert(line);
  }
  if (classes_[kLow].waiting.empty()) owed_to_low_ = std::min<std::int64_t>(owed_to_low_, 0);
}

void FairQueue::move_counter(Class& in, Line& line, std::uint64_t to) {
  Lines& order = line.entries.empty() ? in.idle : in.waiting;
  order.erase(order.iterator_to(line));
  line.counter = to;
  order.insert(line);
}

void FairQueue::start(QueueEntry& entry) {
  count_for_low(entry.priority, as_signed(entry.work));
  Class& in = class_of(entry.priority);
  Line& line = in.lines.find(entry.tenant)->second;
  unlink(entry);
  line.note(static_cast<double>(entry.before), static_cast<double>(started_ - entry.started));
  started_ += entry.work;
  line.turn = ++turns_;
  move_counter(in, line, line.counter + entry.work);
  entry.charged = {entry.work, line.turn};
  in.forget();
}

void FairQueue::remove(QueueEntry& entry) {
  Class& in = class_of(entry.priority);
  unlink(entry);
  in.forget();
}

Charge FairQueue::charge(std::string_view tenant, base::Priority priority, std::uint64_t work) {
  const Charge charged{std::max<std::uint64_t>(work, 1), ++turns_};
  count_for_low(priority, as_signed(charged.work));
  started_ += charged.work;
  settle(tenant, priority, {0, charged.turn}, charged.work);
  return charged;
}

// What was charged before anybody waited was free. What was charged to a counter that is forgotten
// since is not given back to the one that began anew, but what was too little still counts.
void FairQueue::settle(std::string_view tenant, base::Priority priority, const Charge& charged,
                       std::uint64_t true_work) {
  Class& in = class_of(priority);
  if (in.waiting.empty() || charged.turn < in.since) return;
  if (true_work >= charged.work) {
    Line& line = line_for(in, tenant);
    move_counter(in, line, line.counter + (true_work - charged.work));
  } else {
    const auto found = in.lines.find(tenant);
    if (found == in.lines.end() || charged.turn < found->second.since) return;
    Line& line = found->second;
    move_counter(in, line, line.counter - std::min(line.counter, charged.work - true_work));
  }
  in.forget();
}

// Of the same priority alone. Another tenant's entries go before the newcomer's as far as they
// begin, virtually, no later than it does.
std::uint64_t FairQueue::work_before_in(const Class& in, std::string_view tenant) {
  const auto found = in.lines.find(tenant);
  const Line* own = found == in.lines.end() ? nullptr : &found->second;
  std::uint64_t before = own == nullptr ? 0 : own->work;
  const std::uint64_t start =
      before + std::max(in.level(), own == nullptr ? std::uint64_t{0} : own->counter);
  for (const Line& line : in.waiting) {
    if (line.counter > start) break;
    if (&line == own) continue;
    const std::uint64_t first = line.entries.front().work;
    before += std::min(line.work, std::max(first, start - line.counter));
  }
  return before;
}

std::uint64_t FairQueue::work_before(std::string_view tenant, base::Priority priority) const {
  const Class& in = class_of(priority);
  const auto found = in.lines.find(tenant);
  const double overtaken = found == in.lines.end() ? 1 : found->second.overtaken();
  return static_cast<std::uint64_t>(overtaken *
                                    static_cast<double>(waiting_before(tenant, priority)));
}

std::uint64_t FairQueue::waiting_before(std::string_view tenant, base::Priority priority) const {
  const std::uint64_t before = work_before_in(class_of(priority), tenant);
  const Class& high = classes_[kHigh];
  if (priority == base::Priority::kLow) {
    const std::uint64_t others = high.work + classes_[kNormal].work;
    const std::int64_t by_tenths = (kOthersParts + 1) * as_signed(before) - owed_to_low_;
    return std::min(
        before + others,
        std::max(before, static_cast<std::uint64_t>(std::max<std::int64_t>(by_tenths, 0))));
  }
  const std::uint64_t higher = before + (priority == base::Priority::kNormal ? high.work : 0);
  const std::uint64_t tenth =
      static_cast<std::uint64_t>(std::max<std::int64_t>(as_signed(higher) + owed_to_low_, 0)) /
      kOthersParts;
  return higher + std::min(classes_[kLow].work, tenth);
}

bool FairQueue::others_wait_beside_low() const {
  return !classes_[kHigh].waiting.empty() || !classes_[kNormal].waiting.empty();
}

bool FairQueue::low_is_due() const { return owed_to_low_ > 0; }

void FairQueue::count_for_low(base::Priority priority, std::int64_t work) {
  if (priority == base::Priority::kLow) {
    if (others_wait_beside_low()) owed_to_low_ -= kOthersParts * work;
    return;
  }
  owed_to_low_ += work;
  if (classes_[kLow].waiting.empty()) owed_to_low_ = std::min<std::int64_t>(owed_to_low_, 0);
}

}  // namespace penstock::admission
