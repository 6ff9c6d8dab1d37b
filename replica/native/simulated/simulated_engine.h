// An engine without a model: answers that follow from the prompt, on a timing model.
//
// One mutex guards all of it. Work is done by whoever brings it: `start` answers at once what is
// due at once, on gRPC's thread; the engine's own thread wakes for the steps of the timing model
// and for queues that have room again. Nothing is sent while the mutex is held.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "call.h"
#include "delivery.h"
#include "inbox.h"
#include "simulated/adapters.h"
#include "simulated/figures.h"
#include "simulated/prefix_cache.h"
#include "simulated/settings.h"
#include "simulated/stream.h"
#include "simulated/timing.h"

namespace penstock::replica::simulated {

class SimulatedEngine final : public CallHandler {
 public:
  // `inbox` hears of the engine's death, of adapters, and the events of asked calls.
  SimulatedEngine(Settings settings, std::shared_ptr<Inbox> inbox);
  ~SimulatedEngine() override;
  SimulatedEngine(const SimulatedEngine&) = delete;
  SimulatedEngine& operator=(const SimulatedEngine&) = delete;

  void start(std::span<const CallPtr> calls) override;
  void cancel(const CallPtr& call) override;
  void room(std::span<const CallPtr> calls) override;
  v1::Usage cost(const CallPtr& call) override;
  void tell_figures(v1::Load* load) const override;
  void watch(std::function<void()> changed) override;

  // A call from this process: its events go to the inbox under `key`. An internal one takes no
  // slot, and the settings that make calls fail do not apply to it.
  void ask(uint64_t key, v1::CallRequest request, bool internal);
  void cancel_asked(uint64_t key);

  Figures figures() const;
  // A call for an adapter that is not held, and whose digest it tells, waits: the inbox hears that
  // it is wanted, and the calls go on with `add_adapter` or end with `fail_parked`.
  void add_adapter(const AdapterId& id);
  // Not `all`: those that wait for room go on waiting.
  void fail_parked(const AdapterId& id, const v1::ErrorDetail& error, bool all);
  // False where calls use it.
  bool remove_adapter(const std::string& name);
  // Calls for it wait as for one that is not held, until it is opened again.
  void close_adapter(const std::string& name);
  void reopen_adapter(const std::string& name);
  std::vector<AdapterUse> adapter_uses() const;
  // What is wrong with all answers from now on, after a sleep that its settings have it wake from
  // wrongly: "base", "adapter" (they stop to apply), or nothing.
  void wake_wrongly(const std::string& what);
  // The inbox hears once that the first of these is not in use any more.
  void tell_when_idle(std::set<std::string> names);
  // The prompt of a request, by ids; where `settings.microserving`.
  std::variant<std::vector<uint32_t>, v1::ErrorDetail> tokenize(v1::CallRequest request) const;
  // The prefix cache: how many of these blocks are in it, and these come into it.
  size_t matched_blocks(std::span<const uint64_t> hashes);
  void add_blocks(std::span<const uint64_t> hashes);
  void forget_blocks();
  // So many blocks are kept for KV that is to come.
  void set_leased(uint64_t blocks);
  // Ends the engine's thread. Calls make no progress from then on.
  void stop();

 private:
  // Keys of asked calls, apart from those of the switchboard.
  static constexpr uint64_t kAskedKeys = uint64_t{1} << 63;

  // The streams of one rate, which share their steps.
  struct Group {
    Time period;
    std::vector<StreamPtr> streams;
  };

  Time now() const;
  void run();
  void begin(const CallPtr& call, Delivery* delivery);
  v1::ErrorDetail refusal_of(const Call& call) const;
  v1::ErrorDetail find_adapter(v1::CallRequest* request) const;
  void mistake(const v1::CallRequest& request, uint64_t* seed) const;
  void hash_prompt(const Ask& ask, Stream* stream) const;
  // From its slot to its first token.
  Time prefill_of(const Stream& stream) const;

  // With the mutex held:
  void accept(const CallPtr& call, const Ask& ask);
  Time advance(Time now, Delivery* delivery);
  void admit_waiting(Time now);
  void find_cached(Stream* stream);
  bool slot_for_next() const;
  void begin_due(Time now, Delivery* delivery);
  void step_groups(Time now, Delivery* delivery);
  bool step_group(Group* group, Time now, Delivery* delivery);
  void count_step(Time took);
  void run_unpaced(Time now, Delivery* delivery);
  Time next_wake(Time now) const;
  void plan(Time next);
  // Makes up to `count` tokens of a stream, and its end after the last.
  void produce(const StreamPtr& stream, uint64_t count, Time now, Delivery* delivery);
  bool reaches_fault(const Stream& stream);
  void finish(Stream* stream, Time now, News* news);
  void release(const StreamPtr& stream);
  void stop_cancelled(const StreamPtr& stream, Delivery* delivery);
  bool stopped() const { return dead_ || hung_; }

  const Settings settings_;
  const std::shared_ptr<Inbox> inbox_;
  const std::chrono::steady_clock::time_point born_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::unordered_map<uint64_t, StreamPtr> streams_;  // by the call's key
  std::map<Place, StreamPtr> waiting_;               // for a slot
  uint64_t arrived_ = 0;
  std::multimap<Time, StreamPtr> prefills_;  // by when their first token is due
  std::map<Time, Group> groups_;             // by period
  std::vector<StreamPtr> unpaced_;           // that may go on at once
  Adapters adapters_;
  PrefixCache cache_;
  std::unordered_map<uint64_t, CallPtr> asked_;
  std::function<void()> changed_ = [] {};
  News news_;  // scratch of `produce`
  Figures figures_;
  Time planned_ = kNever;  // the thread's next wake-up
  bool dead_ = false;
  bool hung_ = false;
  std::atomic<bool> base_is_wrong_ = false;
  std::atomic<bool> adapters_are_lost_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace penstock::replica::simulated
