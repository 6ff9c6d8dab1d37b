// Where a value stands among its states: a table says which may follow which, and every other step
// is refused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>

namespace penstock::proxy {

// Of an enum whose states are numbered from 0 and fewer than 16.
template <class State>
class Transitions {
 public:
  struct Row {
    State from;
    std::initializer_list<State> to;
  };
  constexpr Transitions(std::initializer_list<Row> rows) {
    for (const Row& row : rows) {
      for (const State to : row.to) next_[at(row.from)] |= static_cast<uint16_t>(1U << at(to));
    }
  }
  constexpr bool allow(State from, State to) const { return (next_[at(from)] >> at(to) & 1U) != 0; }

 private:
  static constexpr size_t at(State state) { return static_cast<size_t>(state); }

  std::array<uint16_t, 16> next_{};
};

// A step that the table does not have is a fault of ours. Under a sanitizer it ends the process;
// else nothing changes, and it is to be logged.
template <class State, const Transitions<State>& kTable>
class Stage {
 public:
  State now() const { return now_; }
  void advance(State to) {
    if (kTable.allow(now_, to)) {
      now_ = to;
      return;
    }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    std::abort();
#endif
    refused_ = true;
  }
  bool refused() const { return refused_; }

 private:
  State now_{};
  bool refused_ = false;
};

}  // namespace penstock::proxy
