// SPDX-License-Identifier: Zlib
// A gate that threads pass when it is open. Uses a lock, because std::atomic's wait() loses
// notifications if the system has no futex (libstdc++ 12, Windows).
#pragma once

#include <condition_variable>
#include <mutex>

namespace lbvh::test {

class Gate {
 public:
  explicit Gate(bool isOpen) : isOpen_(isOpen) {}

  void close() { set(false); }
  void open() { set(true); }
  void pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return isOpen_; });
  }

 private:
  void set(bool isOpen) {
    const std::lock_guard<std::mutex> lock(mutex_);
    isOpen_ = isOpen;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool isOpen_;
};

}  // namespace lbvh::test
