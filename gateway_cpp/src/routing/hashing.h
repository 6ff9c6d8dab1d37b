// Hashes that every gateway computes alike, and cheap seeded random numbers. Not for secrets.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

// Of bodies, which may be long: sixteen bytes at a time. Likewise the same in every process.
inline std::uint64_t hash_bytes(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  constexpr std::size_t kBlock = 2 * kWord;
  std::uint64_t hash = mix(bytes.size());
  const auto add = [&hash](const char* block) {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::memcpy(&low, block, kWord);
    std::memcpy(&high, block + kWord, kWord);
    const auto product = static_cast<unsigned __int128>(low ^ 0x9e3779b97f4a7c15U) *
                         (high ^ hash ^ 0xd6e8feb86659fd93U);
    hash = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
  };
  for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock)) add(bytes.data());
  std::array<char, kBlock> rest{};
  bytes.copy(rest.data(), bytes.size());
  add(rest.data());
  return mix(hash);
}

// Of two hashes, in their order.
constexpr std::uint64_t hash_both(std::uint64_t one, std::uint64_t other) {
  return mix(mix(one) + other);
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
