#include "proxy/body_job.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "runtime/side_threads.h"

namespace penstock::proxy {

namespace asio = boost::asio;

std::shared_ptr<BodyJob> BodyJob::reading(const openai::Endpoint& endpoint,
                                          std::shared_ptr<LargeBody> body,
                                          const base::BodyElements& most) {
  const auto read = [&endpoint, most](BodyJob& job) {
    static thread_local openai::RequestParser parser;
    job.request.emplace(parser.parse(endpoint, *job.body_->text, most));
  };
  return std::shared_ptr<BodyJob>(new BodyJob(std::move(body), read));
}

std::shared_ptr<BodyJob> BodyJob::hashing(std::string deployment_uid, std::string_view path,
                                          std::shared_ptr<LargeBody> body) {
  const auto hash = [uid = std::move(deployment_uid), path](BodyJob& job) {
    job.fingerprint = admission::fingerprint_of(uid, path, *job.body_->text);
  };
  return std::shared_ptr<BodyJob>(new BodyJob(std::move(body), hash));
}

void BodyJob::start(const std::shared_ptr<BodyJob>& job, runtime::SideThreads& threads,
                    const runtime::Executor& io, runtime::Signal& news) {
  threads.add(job->body_->text->size(), [job, io, &news] {
    job->run();
    // Left or not is looked at where it is decided.
    asio::post(io, [job, &news] {
      job->done_ = true;
      if (job->state_.load() != State::kLeft) news.raise();
    });
  });
}

void BodyJob::leave() {
  if (state_.exchange(State::kLeft) == State::kWaits) body_.reset();
}

void BodyJob::run() noexcept {
  State state = State::kWaits;
  if (!state_.compare_exchange_strong(state, State::kBegun)) return;  // left
  try {
    work_(*this);
  } catch (...) {
    broken_ = std::current_exception();
  }
  body_.reset();
}

bool BodyJob::done() const {
  if (done_ && broken_) std::rethrow_exception(broken_);
  return done_;
}

}  // namespace penstock::proxy
