// Hashes that every gateway computes alike, and cheap seeded random numbers. Not for secrets.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::routing {

// Spreads a number over all bits (the finaliser of splitmix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// FNV-1a, mixed: the same in every process.
constexpr std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return mix(hash);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15U); }
  // 0..bound-1; bound is at least 1 and fits 32 bits.
  std::size_t below(std::size_t bound) { return ((next() >> 32U) * bound) >> 32U; }

 private:
  std::uint64_t state_;
};

}  // namespace penstock::routing
