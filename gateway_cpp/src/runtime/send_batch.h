// What the clients of one I/O thread are to be sent while much comes for them at once. As long as a
// batch is open, what is written to them is kept; when it closes, all of it is sent, in the order
// in which it came. Making pieces and sending them need different code and memory: one after the
// other for all is cheaper than in turns for each. That thread only.
#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::runtime {

class SendBatch {
 public:
  // How much is kept at most; what comes then is for its sender to send.
  static constexpr std::size_t kMostKept = 1024UL * 1024;

  // Whoever has something kept while a batch is open. It may go before the batch closes.
  class Sender : public boost::intrusive::list_base_hook<
                     boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
   public:
    // The batch closes: what was kept is to be sent now. Others may go or write meanwhile, once
    // `bytes` are not needed any more.
    virtual void send_kept(std::string_view bytes) = 0;
    bool has_kept() const { return is_linked(); }
    std::size_t kept_size() const { return is_linked() ? size_ : 0; }

   protected:
    ~Sender() = default;

   private:
    friend class SendBatch;
    std::size_t begin_ = 0;  // of what is kept for it, in the batch's bytes
    std::size_t size_ = 0;
  };

  // `sent`: told after each batch, also after one that nothing was kept in.
  explicit SendBatch(std::function<void()> sent = [] {}) : sent_(std::move(sent)) {}
  SendBatch(const SendBatch&) = delete;
  SendBatch& operator=(const SendBatch&) = delete;

  // A batch is open while one of these lives; one within another belongs to it.
  class Open {
   public:
    explicit Open(SendBatch& batch) : batch_(batch) { ++batch_.open_; }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
    ~Open() {
      if (--batch_.open_ == 0) batch_.send_all();
    }

   private:
    SendBatch& batch_;
  };

  // Keeps a copy of the parts, one behind the other. False: no batch is open, it is full, or
  // something is kept for that sender already.
  template <class... Parts>
  bool keep(Sender& sender, const Parts&... parts) {
    const std::size_t size = (std::string_view(parts).size() + ...);
    if (open_ == 0 || sender.is_linked() || used_ + size > kMostKept) return false;
    make_room(size);
    sender.begin_ = used_;
    sender.size_ = size;
    (add(parts), ...);
    senders_.push_back(sender);
    return true;
  }

  // The same behind what is kept for that sender already, to be sent with it. False: no batch is
  // open, or it is full.
  template <class... Parts>
  bool keep_more(Sender& sender, const Parts&... parts) {
    if (!sender.is_linked()) return keep(sender, parts...);
    const std::size_t size = (std::string_view(parts).size() + ...);
    if (open_ == 0 || used_ + sender.size_ + size > kMostKept) return false;
    make_room(sender.size_ + size);
    move_to_end(sender);
    sender.size_ += size;
    (add(parts), ...);
    return true;
  }

  // What is kept for it, which from here on is its own to send; valid until more is kept. Empty:
  // nothing.
  std::string_view take_back(Sender& sender) {
    if (!sender.is_linked()) return {};
    sender.unlink();
    return std::string_view(kept_).substr(sender.begin_, sender.size_);
  }

 private:
  void send_all() {
    while (!senders_.empty()) {
      Sender& next = senders_.front();
      next.send_kept(take_back(next));
    }
    used_ = 0;
    sent_();
  }
  void make_room(std::size_t size) {
    if (used_ + size > kept_.size()) kept_.resize(std::max(used_ + size, 2 * kept_.size()));
  }
  // What others had kept since stays between; the place in the order, too.
  void move_to_end(Sender& sender) {
    if (sender.begin_ + sender.size_ == used_) return;
    std::copy_n(kept_.data() + sender.begin_, sender.size_, kept_.data() + used_);
    sender.begin_ = std::exchange(used_, used_ + sender.size_);
  }
  void add(std::string_view part) {
    part.copy(kept_.data() + used_, part.size());
    used_ += part.size();
  }

  const std::function<void()> sent_;
  boost::intrusive::list<Sender, boost::intrusive::constant_time_size<false>> senders_;
  std::string kept_;  // of which so much is used
  std::size_t used_ = 0;
  unsigned open_ = 0;
};

}  // namespace penstock::runtime
