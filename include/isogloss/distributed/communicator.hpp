/// @file distributed/communicator.hpp  The communication that ranks working on one model need.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <isogloss/error.hpp>
#include <isogloss/types.hpp>
#include <span>
#include <string_view>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

/// A group of ranks 0 … size() - 1, each of which holds one object. All functions except rank() and size() are
/// collective: every rank calls the same ones in the same order, and none returns before the ranks it depends on
/// have called. Byte counts that concern the same data agree between ranks.
///
///     rank(), size()                       number of this rank, number of ranks
///     barrier()                            returns when all ranks have called it
///     broadcast(bytes, root)               the bytes of rank `root`, on every rank
///     all_gather(part, whole, counts)      the parts of all ranks concatenated, counts[r] bytes of rank r
///     all_to_all(send, sent, received, counts)   sent[r] bytes to rank r, counts[r] bytes from it, each in the
///                                          order of the ranks
///
/// Models: Alone, ThreadGroup::Member, mpi::Communicator (mpi.hpp). A rank that fails must end the others, which
/// wait for it otherwise: ThreadGroup::run does so, and between processes mpi::guarded.
template <class C>
concept Communicator = requires(C& c, std::span<std::byte> bytes, std::span<const std::byte> part,
                                std::span<const Index> counts) {
    { c.rank() } -> std::convertible_to<Index>;
    { c.size() } -> std::convertible_to<Index>;
    c.barrier();
    c.broadcast(bytes, Index{0});
    c.all_gather(part, bytes, counts);
    c.all_to_all(part, counts, bytes, counts);
};

/// A single rank.
struct Alone {
    Index rank() const { return 0; }
    Index size() const { return 1; }
    void barrier() const {}
    void broadcast(std::span<std::byte>, Index) const {}
    void all_gather(std::span<const std::byte> part, std::span<std::byte> whole,
                    std::span<const Index>) const {
        std::copy(part.begin(), part.end(), whole.begin());
    }
    void all_to_all(std::span<const std::byte> send, std::span<const Index>, std::span<std::byte> received,
                    std::span<const Index>) const {
        std::copy(send.begin(), send.end(), received.begin());
    }
};

/// The values that all ranks give, on every rank, in the order of the ranks.
template <class V, Communicator C> std::vector<V> gathered(C& ranks, const V& own) {
    std::vector<V> all(static_cast<std::size_t>(ranks.size()));
    ranks.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                     std::vector<Index>(all.size(), Index{sizeof(V)}));
    return all;
}

/// Throws UsageError, naming `who`, on every rank unless all give the same numbers; `names` say what these are.
template <std::size_t n, Communicator C> void require_same(std::string_view who, C& ranks,
                                                           const std::array<const char*, n>& names,
                                                           const std::array<Index, n>& own) {
    const auto all = gathered(ranks, own);
    for (std::size_t r = 1; r < all.size(); ++r)
        for (std::size_t i = 0; i < n; ++i)
            if (all[r][i] != all[0][i])
                throw UsageError(who, ": found ", names[i], " = ", all[r][i], " on rank ", r, " and ",
                                 all[0][i], " on rank 0, expected the same on every rank");
}

/// The numbers of rank `root`, on every rank.
template <class T, Communicator C> void broadcast(C& ranks, std::span<T> numbers, Index root = 0) {
    ranks.broadcast(std::as_writable_bytes(numbers), root);
}

}}}  // namespace isogloss::distributed
