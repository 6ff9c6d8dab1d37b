// A deployment's queue and places without sockets or threads: discrete events drive the same
// FairQueue and WaitModel that a gateway has. Deterministic: randomness is the caller's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "admission/fair_queue.h"
#include "admission/wait_model.h"

namespace penstock::admission {

// For FairQueue::next: whoever is first.
inline constexpr auto kAny = [](const QueueEntry&) { return true; };

class QueueSimulation {
 public:
  using Seconds = std::chrono::duration<double>;

  struct Request {
    QueueEntry entry;
    double true_work = 0;  // entry.work: as it was estimated
    double arrived = 0;    // seconds since the simulation began
    double started = -1;   // below 0: not yet
    double ended = -1;
    double told = 0;  // seconds that it was told it would wait
    double left = 0;  // work
    WaitModel::Run run = 0;
    double waited() const { return started - arrived; }
  };

  // `pace`: work a second of one place while so many run.
  QueueSimulation(std::size_t places, std::function<double(std::size_t)> pace)
      : places_(places), pace_(std::move(pace)) {}

  // To arrive at `at`, no sooner than now.
  void arrive(double at, std::string tenant, base::Priority priority, std::uint64_t estimated,
              double true_work) {
    auto request = std::make_unique<Request>();
    request->entry.tenant = std::move(tenant);
    request->entry.priority = priority;
    request->entry.work = estimated;
    request->true_work = true_work;
    request->arrived = at;
    coming_.emplace(at, request.get());
    requests_.push_back(std::move(request));
  }

  void set_places(std::size_t places) { places_ = places; }
  // Called for each that ends: a client may come again.
  void on_end(std::function<void(const Request&)> ended) { ended_ = std::move(ended); }

  // Until there is nothing more to do, or `until`.
  void run(double until = 1e9) {
    while (step(until)) {
    }
  }

  double now() const { return now_; }
  FairQueue& queue() { return queue_; }
  WaitModel& model() { return model_; }
  const std::vector<std::unique_ptr<Request>>& requests() const { return requests_; }

  base::SteadyTime time(double at) const {
    return base::SteadyTime(std::chrono::duration_cast<base::SteadyTime::duration>(Seconds(at)));
  }

 private:
  bool step(double until) {
    const double speed = pace_(running_.size());
    Request* first = nullptr;
    for (Request* request : running_) {
      if (first == nullptr || request->left < first->left) first = request;
    }
    const double end = first == nullptr ? 1e18 : now_ + first->left / speed;
    const double arrival = coming_.empty() ? 1e18 : coming_.begin()->first;
    const double next = std::min(end, arrival);
    if (next > until) return false;
    for (Request* request : running_) request->left -= (next - now_) * speed;
    now_ = next;
    if (end <= arrival) {
      finish(*first);
    } else {
      Request& request = *coming_.begin()->second;
      coming_.erase(coming_.begin());
      come(request);
    }
    return true;
  }

  void come(Request& request) {
    if (running_.size() < places_ && queue_.empty()) {
      request.entry.charged =
          queue_.charge(request.entry.tenant, request.entry.priority, request.entry.work);
      begin(request);
      return;
    }
    const auto before = queue_.work_before(request.entry.tenant, request.entry.priority);
    request.told = Seconds(model_.estimate(before, places_, time(now_))).count();
    queue_.push(request.entry);
    waiting_[&request.entry] = &request;
  }

  void begin(Request& request) {
    request.started = now_;
    request.left = request.true_work;
    request.run = model_.started(request.entry.work, time(now_));
    running_.push_back(&request);
  }

  void finish(Request& request) {
    request.ended = now_;
    std::erase(running_, &request);
    model_.ended(request.run, time(now_));
    queue_.settle(request.entry.tenant, request.entry.priority, request.entry.charged,
                  static_cast<std::uint64_t>(request.true_work));
    fill();
    if (ended_) ended_(request);
  }

  void fill() {
    while (running_.size() < places_) {
      QueueEntry* entry = queue_.next(kAny);
      if (entry == nullptr) return;
      queue_.start(*entry);
      begin(*waiting_[entry]);
      waiting_.erase(entry);
    }
  }

  std::size_t places_;
  std::function<double(std::size_t)> pace_;
  std::function<void(const Request&)> ended_;
  std::vector<std::unique_ptr<Request>> requests_;  // outlives the queue's links
  FairQueue queue_;
  WaitModel model_;
  std::multimap<double, Request*> coming_;
  std::map<QueueEntry*, Request*> waiting_;
  std::vector<Request*> running_;
  double now_ = 0;
};

}  // namespace penstock::admission
