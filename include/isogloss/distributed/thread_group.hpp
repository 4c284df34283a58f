/// @file distributed/thread_group.hpp  Ranks that are threads of one process.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <exception>
#include <isogloss/distributed/communicator.hpp>
#include <mutex>
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
    // What a rank shows to the others.
    struct Post {
        const std::byte* data = nullptr;
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
            post({bytes.data()});
            if (rank_ != root && !bytes.empty())
                std::memcpy(bytes.data(), group_.posts_[at(root)].data, bytes.size());
            barrier();
        }
        void all_gather(std::span<const std::byte> part, std::span<std::byte> whole,
                        std::span<const Index> counts) {
            post({part.data()});
            std::byte* to = whole.data();
            for (Index r = 0; r < size(); ++r) to = take(r, 0, counts[at(r)], to);
            barrier();
        }
        void all_to_all(std::span<const std::byte> send, std::span<const Index> sent,
                        std::span<std::byte> received, std::span<const Index> counts) {
            post({send.data(), sent.data()});
            std::byte* to = received.data();
            for (Index r = 0; r < size(); ++r) {
                Index before = 0;
                for (Index q = 0; q < rank_; ++q) before += group_.posts_[at(r)].sent[q];
                to = take(r, before, counts[at(r)], to);
            }
            barrier();
        }
        void all_reduce(std::span<float> numbers) { sum(numbers); }
        void all_reduce(std::span<double> numbers) { sum(numbers); }

    private:
        static std::size_t at(Index rank) { return static_cast<std::size_t>(rank); }
        // Publishes what the other ranks may read until the next barrier.
        void post(Post what) {
            group_.posts_[at(rank_)] = what;
            barrier();
        }
        std::byte* take(Index from, Index first, Index count, std::byte* to) const {
            if (count > 0)
                std::memcpy(to, group_.posts_[at(from)].data + first, static_cast<std::size_t>(count));
            return to + count;
        }
        template <class T> void sum(std::span<T> numbers) {
            const auto own = std::as_bytes(numbers);
            std::vector<T> all(numbers.size() * at(size()));
            const std::vector<Index> counts(at(size()), std::ssize(own));
            all_gather(own, std::as_writable_bytes(std::span(all)), counts);
            for (std::size_t i = 0; i < numbers.size(); ++i) {
                numbers[i] = all[i];
                for (std::size_t r = 1; r < at(size()); ++r) numbers[i] += all[r * numbers.size() + i];
            }
        }
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
        refuse();
        const auto round = round_;
        if (++waiting_ == size_) {
            waiting_ = 0;
            ++round_;
            all_here_.notify_all();
            return;
        }
        all_here_.wait(lock, [&] { return round != round_ || failed_ || ended_; });
        if (round == round_) refuse();
    }
    void refuse() const {
        if (failed_) throw Left();
        if (ended_)
            throw UsageError(
                "thread group: a rank has ended while others wait for it; every rank must call the same "
                "functions in the same order");
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
