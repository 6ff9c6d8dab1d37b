#include "simulated/words.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace penstock::replica::simulated {
namespace {

// A sentence takes one word from each column. Every column has the same size, a power of two.
constexpr size_t kColumns = 7;
constexpr size_t kRows = 16;
constexpr std::array<std::array<std::string_view, kRows>, kColumns> kWords = {{
    {" The", " A", " Every", " This", " One", " Another", " That", " Some", " Our", " Your",
     " Their", " No", " Each", " My", " Any", " Its"},
    {" quiet", " old", " bright", " small", " wide", " busy", " early", " golden", " narrow",
     " patient", " green", " steady", " lonely", " curious", " windy", " clever"},
    {" river", " miller", " garden", " wheel", " keeper", " valley", " bridge", " fox", " harbour",
     " teacher", " orchard", " engine", " heron", " village", " baker", " lantern"},
    {" carries", " watches", " follows", " feeds", " remembers", " crosses", " lifts", " paints",
     " guards", " mends", " greets", " turns", " counts", " finds", " shelters", " teaches"},
    {" the", " a", " some", " one", " another", " this", " that", " every", " our", " your",
     " their", " its", " my", " each", " any", " no"},
    {" silver", " heavy", " hidden", " warm", " distant", " broken", " painted", " gentle",
     " secret", " wooden", " hungry", " foggy", " humble", " yellow", " sleepy", " brave"},
    {" boat.", " harvest.", " story.", " lamp.", " traveller.", " garden.", " tower.", " horse.",
     " letter.", " morning.", " market.", " forest.", " kettle.", " ladder.", " island.",
     " window."},
}};
// Ids 0..2 are what many tokenizers keep for padding, begin and end.
constexpr uint32_t kFirstTokenId = 3;

uint64_t scramble(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

Word word_at(uint64_t seed, uint64_t index) {
  const size_t column = index % kColumns;
  const size_t row = scramble(seed + index * 0x9e3779b97f4a7c15ULL) % kRows;
  std::string_view text = kWords[column][row];
  if (index == 0) text.remove_prefix(1);
  return {static_cast<uint32_t>(kFirstTokenId + column * kRows + row), text};
}

std::string text_of(uint64_t seed, uint64_t count) {
  std::string text;
  for (uint64_t i = 0; i < count; ++i) text.append(word_at(seed, i).text);
  return text;
}

std::optional<uint64_t> words_before_stop(uint64_t seed, uint64_t count,
                                          std::span<const std::string> stops) {
  const std::string text = text_of(seed, count);
  size_t first = std::string::npos;
  for (const std::string& stop : stops) {
    if (!stop.empty()) first = std::min(first, text.find(stop));
  }
  if (first == std::string::npos) return std::nullopt;
  uint64_t words = 0;
  for (size_t end = word_at(seed, 0).text.size(); end <= first;) {
    end += word_at(seed, ++words).text.size();
  }
  return words;
}

uint64_t mix(uint64_t hash, std::string_view text) {
  while (text.size() >= sizeof(uint64_t)) {
    uint64_t eight = 0;
    std::memcpy(&eight, text.data(), sizeof eight);
    hash = scramble(hash ^ eight) + 1;
    text.remove_prefix(sizeof eight);
  }
  uint64_t rest = text.size() << 56;
  std::memcpy(&rest, text.data(), text.size());
  return scramble(hash ^ rest) + 1;
}

}  // namespace penstock::replica::simulated
