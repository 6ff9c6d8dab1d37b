// Requests of one I/O thread that are told what is found out elsewhere: that engines die of what
// they ask, that their key is good no more, that their replica is stuck or goes. That thread only.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "admission/suspects.h"
#include "dispatch/dispatchers.h"
#include "routing/replica.h"
#include "routing/route_table.h"
#include "runtime/signal.h"

namespace penstock::proxy {

template <class Entry>
using Lookouts = boost::intrusive::list<Entry, boost::intrusive::constant_time_size<false>>;
using Lookout =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

// A request that is with a replica, or waits for one, and has no answer yet.
struct Opening : Lookout {
  runtime::Signal* news = nullptr;
  size_t bytes = 0;  // to be hashed on this thread
  bool look_again = false;
};

class Openings {
 public:
  // Listed for as long as this lives.
  class Listed {
   public:
    Listed(Openings& openings, Opening& opening) : opening_(opening) {
      openings.all_.push_back(opening);
    }
    Listed(const Listed&) = delete;
    Listed& operator=(const Listed&) = delete;
    ~Listed() { opening_.unlink(); }

   private:
    Opening& opening_;
  };

  // Where there are new suspects, all are told to look once more: of many, some in each tick.
  void tell(const admission::Suspects& suspects);

 private:
  Lookouts<Opening> all_;
  Lookouts<Opening> to_look_at_;  // of them, once more
  uint64_t findings_ = 0;         // of the suspects, that were heard of
};

// A request that came with a key, from its beginning to its end.
struct Keyed : Lookout {
  runtime::Signal* news = nullptr;
  std::string_view id;  // of the key
  bool ended = false;   // it was revoked, and this is to end with it
};

class KeyedRequests {
 public:
  // Until it goes away.
  void add(Keyed& keyed, const routing::Routes& routes) {
    keyed.ended = routes.is_ended(keyed.id);
    all_.push_back(keyed);
  }
  // Those of keys that were revoked with these routes are told so.
  void tell(const std::shared_ptr<const routing::Routes>& routes);

 private:
  Lookouts<Keyed> all_;
  std::shared_ptr<const routing::Routes> looked_at_;
};

// A stream that runs on a replica, from its first event to the end of its call there.
struct Running : Lookout {
  Running(runtime::Signal& its, std::shared_ptr<const routing::Replica> at)
      : news(&its), replica(std::move(at)), word(replica->word()) {}

  runtime::Signal* news;
  // That its call is on; it may have left the routes, and the call be over, before this is gone.
  std::shared_ptr<const routing::Replica> replica;
  routing::Word word;  // what it was told of that last
};

class RunningStreams {
 public:
  // Until it goes away.
  void add(Running& running) { all_.push_back(running); }
  // Those whose replica's word has changed are roused, if any has since the last time.
  void tell(const dispatch::Dispatchers::ByUid& dispatchers);

 private:
  Lookouts<Running> all_;
  uint64_t words_ = 0;  // of the dispatchers, that were heard of
};

}  // namespace penstock::proxy
