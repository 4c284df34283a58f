/// Threads of one process that send each other messages: a communicator that moves bytes while a rank works on.
#pragma once

#include <algorithm>
#include <isogloss/distributed/thread_group.hpp>
#include <map>
#include <mutex>
#include <queue>
#include <thread>
#include <tuple>
#include <vector>

namespace mailbox {

using isogloss::Index;
using namespace isogloss::distributed;

/// What is on its way, by sender, receiver and tag.
struct Post {
    std::mutex mutex;
    std::map<std::tuple<Index, Index, int>, std::queue<std::vector<std::byte>>> messages;
};

/// A member of a thread group with start, done and finish.
class Ranks {
public:
    Ranks(ThreadGroup::Member& member, Post& post, bool concurrent)
        : member_(member), post_(post), concurrent_(concurrent) {}
    Index rank() const { return member_.rank(); }
    Index size() const { return member_.size(); }
    void barrier() { member_.barrier(); }
    void broadcast(std::span<std::byte> bytes, Index root) { member_.broadcast(bytes, root); }
    void all_gather(std::span<const std::byte> part, std::span<std::byte> whole,
                    std::span<const Index> counts) {
        member_.all_gather(part, whole, counts);
    }
    void all_to_all(std::span<const std::byte> send, std::span<const Index> sent,
                    std::span<std::byte> received, std::span<const Index> counts) {
        member_.all_to_all(send, sent, received, counts);
    }
    void all_reduce(std::span<float> numbers) { member_.all_reduce(numbers); }
    void all_reduce(std::span<double> numbers) { member_.all_reduce(numbers); }

    Index start(int tag, std::span<const Outgoing> out, std::span<const Incoming> in) {
        const std::lock_guard lock(post_.mutex);
        for (const auto& o : out) post_.messages[{rank(), o.to, tag}].emplace(o.bytes.begin(), o.bytes.end());
        wanted_.push_back({tag, {in.begin(), in.end()}});
        return std::ssize(wanted_) - 1;
    }
    bool done(Index number) {
        const std::lock_guard lock(post_.mutex);
        auto& [tag, in] = wanted_[static_cast<std::size_t>(number)];
        while (!in.empty()) {
            auto& queue = post_.messages[{in.front().from, rank(), tag}];
            if (queue.empty()) return false;
            if (queue.front().size() != in.front().bytes.size()) throw isogloss::UsageError("another size");
            std::ranges::copy(queue.front(), in.front().bytes.begin());
            queue.pop();
            in.erase(in.begin());
        }
        return true;
    }
    void finish(Index number) {
        while (!done(number)) std::this_thread::yield();
    }
    bool concurrent() const { return concurrent_; }

private:
    ThreadGroup::Member& member_;
    Post& post_;
    bool concurrent_;
    std::vector<std::pair<int, std::vector<Incoming>>> wanted_;
};
static_assert(Asynchronous<Ranks>);

}  // namespace mailbox
