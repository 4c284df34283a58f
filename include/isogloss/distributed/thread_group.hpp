/// @file distributed/thread_group.hpp  Ranks that are threads of one process.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <isogloss/distributed/communicator.hpp>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

/// Runs a function once per rank, for n ranks, each in its own thread with a Communicator; for testing programs
/// without several processes, and for use on one machine.
///
///     ThreadGroup::run(4, [&](ThreadGroup::Member& ranks) { … ranks.rank() … });
///
/// Graphs of different ranks share nothing. threads() is one setting for the whole process: leave it at 1.
class ThreadGroup {
    // What a rank shows to the others: its bytes, and how many of them each rank gets; null: every rank gets all.
    struct Post {
        std::span<const std::byte> bytes;
        const Index* sent = nullptr;
    };

public:
    /// Thrown by ranks that wait for a failed one; run() rethrows the error of the failed rank instead.
    struct Left : Error {
        Left() : Error("thread group: another rank has failed") {}
    };

    /// A single rank.
    class Member {
    public:
        Member(ThreadGroup& group, Index rank) : group_(group), rank_(rank) {}
        Index rank() const { return rank_; }
        Index size() const { return group_.size_; }
        void barrier() { group_.meet(); }
        void broadcast(std::span<std::byte> bytes, Index root) {
            require("thread group", "root", root, 0, size() - 1);
            exchange({bytes}, [&] { return rank_ == root || receive(root, std::ssize(bytes), bytes); });
        }
        void all_gather(std::span<const std::byte> part, std::span<std::byte> whole,
                        std::span<const Index> counts) {
            exchange({part}, [&] { return receive_all(counts, whole); });
        }
        void all_to_all(std::span<const std::byte> send, std::span<const Index> sent,
                        std::span<std::byte> received, std::span<const Index> counts) {
            exchange({send, sent.data()}, [&] { return receive_all(counts, received); });
        }

    private:
        // Shows the others what they may read until all have done so, and reads by `receive`; throws, only then, if it
        // has found other sizes.
        template <class F> void exchange(const Post& own, F&& receive) {
            group_.posts_[at(rank_)] = own;
            barrier();
            const bool fits = receive();
            barrier();
            if (!fits)
                throw UsageError("thread group: ranks disagree on the sizes of what rank ", rank_,
                                 " receives");
        }
        bool receive_all(std::span<const Index> counts, std::span<std::byte> whole) const {
            bool fits = true;
            for (Index r = 0; r < size() && fits; ++r) fits = receive(r, counts[at(r)], whole);
            return fits;
        }
        // Copies what a rank has for this one to the front of `memory`, which is cut off; or returns that it does not fit.
        bool receive(Index rank, Index expected, std::span<std::byte>& memory) const {
            const Post& post = group_.posts_[at(rank)];
            auto bytes = post.bytes;
            if (post.sent) {
                const Index before = std::accumulate(post.sent, post.sent + rank_, Index{0});
                if (before + post.sent[rank_] > std::ssize(bytes)) return false;
                bytes = bytes.subspan(at(before), at(post.sent[rank_]));
            }
            if (std::ssize(bytes) != expected || bytes.size() > memory.size()) return false;
            std::copy(bytes.begin(), bytes.end(), memory.begin());
            memory = memory.subspan(bytes.size());
            return true;
        }
        static std::size_t at(Index rank) { return static_cast<std::size_t>(rank); }

        ThreadGroup& group_;
        Index rank_;
    };

    /// Runs f(member) in n threads, 1 ≤ n ≤ 1024, and returns when all have ended. If some throw, rethrows the
    /// error of the lowest rank that did not merely wait for another. Throws UsageError for n out of range, and
    /// std::system_error, when those begun have ended, if the system has no thread left.
    template <class F> static void run(Index n, F&& f) {
        require("thread group", "n", n, 1, 1024);
        ThreadGroup group(n);
        std::vector<std::exception_ptr> errors(static_cast<std::size_t>(n));
        {
            std::vector<std::jthread> ranks;
            const auto start = [&](Index r) {
                ranks.emplace_back([&, r] {
                    try {
                        Member member(group, r);
                        f(member);
                        group.leave(true);
                    } catch (const Left&) {
                    } catch (...) {
                        errors[static_cast<std::size_t>(r)] = std::current_exception();
                        group.leave(false);
                    }
                });
            };
            try {
                for (Index r = 0; r < n; ++r) start(r);
            } catch (...) {  // no thread can be created: those that there are must not wait for it
                group.leave(false);
                throw;
            }
        }
        for (const auto& error : errors)
            if (error) std::rethrow_exception(error);
    }

private:
    explicit ThreadGroup(Index size) : size_(size), posts_(static_cast<std::size_t>(size)) {}

    void meet() {
        std::unique_lock lock(mutex_);
        const auto round = round_;
        if (++waiting_ == size_) {
            waiting_ = 0;
            ++round_;
            all_here_.notify_all();
            return;
        }
        all_here_.wait(lock, [&] { return round != round_ || failed_ || ended_; });
        if (round != round_) return;
        if (failed_) throw Left();
        throw UsageError(
            "thread group: a rank has ended while others wait for it; all call the same functions");
    }
    // A rank has returned or failed.
    void leave(bool ended) {
        const std::lock_guard lock(mutex_);
        (ended ? ended_ : failed_) = true;
        all_here_.notify_all();
    }

    Index size_, waiting_ = 0;
    std::uint64_t round_ = 0;
    bool failed_ = false, ended_ = false;
    std::mutex mutex_;
    std::condition_variable all_here_;
    std::vector<Post> posts_;
};

static_assert(Communicator<Alone> && Communicator<ThreadGroup::Member>);

}}}  // namespace isogloss::distributed
