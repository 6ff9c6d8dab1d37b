// Which replica a block of a prefix was last computed on. Bounded: once a generation is full the
// one before it is forgotten, and with it what nobody asked for since. It grows as it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::routing {

class PrefixTable {
 public:
  // At most so many blocks in each of two generations.
  void set_capacity(std::size_t blocks) { capacity_ = blocks; }

  // The serial of the replica; 0: not known. What is asked for is young again.
  std::uint32_t find(std::uint64_t block);
  void put(std::uint64_t block, std::uint32_t serial);
  std::size_t size() const { return young_.count + old_.count; }

 private:
  struct Entry {
    std::uint64_t block = 0;
    std::uint32_t serial = 0;  // 0: free
  };
  // Open addressing; never more than half full, so that a search ends soon.
  struct Generation {
    std::vector<Entry> entries;
    std::size_t count = 0;
    Entry* slot(std::uint64_t block);  // where it is or would be; null: no entries at all
    void put(std::uint64_t block, std::uint32_t serial);
  };

  std::size_t capacity_ = 1024;
  Generation young_;
  Generation old_;
};

}  // namespace penstock::routing
