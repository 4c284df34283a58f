/// @file distributed/background.hpp  A thread that runs a short task periodically while its owner computes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <isogloss/config.hpp>
#include <mutex>
#include <thread>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

/// Calls `step()` every `period` in its own thread, from go_on() until step() returns false or pause() is
/// called; in between the thread sleeps.
///
///     Background background([&] { return … });     // true: there is more to do
///     {
///         const auto alone = background.alone();   // step() does not run while this lives
///         …                                        // what both touch
///         background.go_on();
///     }
///     …
///     background.pause();                          // step() no longer runs
class Background {
public:
    explicit Background(std::function<bool()> step,
                        std::chrono::microseconds period = std::chrono::microseconds(100))
        : step_(std::move(step)), period_(period), thread_([this] { run(); }) {}
    ~Background() {
        {
            const std::lock_guard lock(mutex_);
            ended_ = true;
        }
        wake_.notify_all();
        thread_.join();
    }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    std::unique_lock<std::mutex> alone() { return std::unique_lock(mutex_); }
    /// Call only while holding alone().
    void go_on() {
        active_ = true;
        wake_.notify_all();
    }
    /// The exception thrown by step() since the last call, if any.
    std::exception_ptr pause() {
        const std::lock_guard lock(mutex_);
        active_ = false;
        return std::exchange(error_, nullptr);
    }

private:
    void run() {
        std::unique_lock lock(mutex_);
        while (!ended_) {
            if (!active_) {
                wake_.wait(lock, [&] { return active_ || ended_; });
                continue;
            }
            try {
                active_ = step_();
            } catch (...) {
                error_ = std::current_exception();
                active_ = false;
            }
            if (active_) wake_.wait_for(lock, period_, [&] { return ended_; });
        }
    }

    std::function<bool()> step_;
    std::chrono::microseconds period_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool active_ = false, ended_ = false;
    std::exception_ptr error_;
    std::thread thread_;  // last, so that it starts after the other members are constructed
};

}}}  // namespace isogloss::distributed
