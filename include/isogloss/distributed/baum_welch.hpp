/// @file distributed/baum_welch.hpp  A Baum-Welch step by several ranks, each on some of the sequences.
#pragma once

#include <array>
#include <isogloss/distributed/shard_sum.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/hmm/hmm.hpp>
#include <span>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

namespace detail {

/// The first sequence of each shard, followed by the number of sequences: shards of consecutive sequences with
/// about equally many symbols. Some are empty if there are fewer sequences than shards.
inline Array<Index> shards_of_sequences(const hmm::Sequences& sequences, Index shards) {
    Index all = 0, before = 0;
    for (Index k = 0; k < sequences.size(); ++k) all += std::ssize(sequences[k]);
    Array<Index> first(1, 0);
    for (Index k = 0; k < sequences.size(); before += std::ssize(sequences[k++])) {
        // A sequence belongs to the shard that contains its middle.
        const auto twice = static_cast<double>(2 * before + std::ssize(sequences[k]));
        while (std::ssize(first) < shards &&
               twice * static_cast<double>(shards) >=
                   2.0 * static_cast<double>(all) * static_cast<double>(first.size()))
            first.push_back(k);
    }
    first.resize(shards + 1, sequences.size());
    return first;
}

}  // namespace detail

/// One step of Baum-Welch (Hmm::step) on sequences distributed over ranks; returns Σ log P(sequence) before it on
/// every rank. The expected counts of each shard of sequences are computed by one rank and summed over the tree of
/// ShardSum: with the same shards, 1, 2, 4 … ranks give bit-identical models, and one shard gives Hmm::step.
///
///     hmm::Hmm model({.states = 100, .symbols = V});                  // of the same seed on every rank
///     for (int k = 0; k < 20; ++k) baum_welch_step(model, sequences, ranks, 4);
///
/// Collective: every rank has the same model and all sequences; it reads those of its shards.
///
/// Memory   of a step (see Hmm), plus as many expected counts as the tree over a rank's shards has levels, and
///          two more for sending and receiving
/// Errors   UsageError for fewer shards than ranks, and where ranks differ in shards or model, on every rank. Errors of
///          Hmm::step, on one rank: the program must then end the others. The model is unchanged.
template <Communicator C>
double baum_welch_step(hmm::Hmm& model, const hmm::Sequences& sequences, C& ranks, Index shards) {
    // What is sent has the sizes of the model and of the shards, and every rank takes the M-step by itself.
    std::uint64_t checksum = 0;
    for (const auto* p : {&model.initial(), &model.transition(), &model.emission()})
        checksum = file::hash_bytes({reinterpret_cast<const char*>(p->data()), p->size() * sizeof(double)},
                                    checksum);
    require_same("baum_welch_step", ranks,
                 std::array{"shards", "states", "symbols", "checksum of initial, transition and emission"},
                 std::array{shards, model.states(), model.symbols(), static_cast<Index>(checksum)});
    require("baum_welch_step", "shards", shards, Index{ranks.size()}, most_shards);
    const auto first = detail::shards_of_sequences(sequences, shards);
    const auto mine = shards_of(ranks.rank(), ranks.size(), shards);
    ShardSum<double> sum(shards);
    for (Index s = mine.first; s < mine.last; ++s)
        sum.take(s, model.expect(sequences.part(first[s], first[s + 1])).numbers);
    hmm::ExpectedCounts counts;
    counts.states = model.states(), counts.symbols = model.symbols();
    counts.numbers = std::move(sum.finish(ranks));
    const double before = counts.log_likelihood();
    model.maximise(std::move(counts));
    return before;
}

}}}  // namespace isogloss::distributed
