// A request body that is too large to be copied from hand to hand: everybody who needs it holds it,
// and it goes with the last of them. Its bytes do not change while others hold it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace penstock::upstream {

using SharedBody = std::shared_ptr<const std::string>;

// From here on a body is shared, and read and hashed beside the I/O threads. A smaller one costs an
// I/O thread well under a millisecond, whatever is in it, and is cheaper to copy than to hand over.
inline constexpr size_t kLargeBodyBytes = 64UL * 1024;

}  // namespace penstock::upstream
