#include <isogloss/distributed/baum_welch.hpp>
#include <isogloss/distributed/thread_group.hpp>

#include "catch.hpp"

using namespace isogloss;
using distributed::Alone;
using distributed::baum_welch_step;
using distributed::ThreadGroup;

namespace {

std::vector<std::vector<Token>> texts(Index count) {
    const Random random(5, 8);
    std::vector<std::vector<Token>> all;
    Index place = 0;
    for (Index k = 0; k < count; ++k) {
        all.emplace_back();
        for (Index left = random.below(place++, 40); left > 0; --left)
            all.back().push_back(static_cast<Token>(random.below(place++, 6)));
    }
    return all;
}

struct Model {
    std::vector<double> initial, transition, emission, likelihoods;
    bool operator==(const Model&) const = default;
};

template <class C> Model train(C& ranks, Index shards, const std::vector<std::vector<Token>>& sequences) {
    hmm::Hmm m({.states = 9, .symbols = 6, .prior = 0.01});
    Model out;
    for (int k = 0; k < 4; ++k) out.likelihoods.push_back(baum_welch_step(m, sequences, ranks, shards));
    out.initial = m.initial(), out.transition = m.transition(), out.emission = m.emission();
    return out;
}

}  // namespace

TEST_CASE("Any number of ranks gives the hidden Markov model of one, to the bit", "[distributed][hmm]") {
    const auto sequences = texts(60);
    const Index shards = GENERATE(4, 5, 7);
    Alone alone;
    const Model expected = train(alone, shards, sequences);
    for (const Index n : {1, 2, 3, 4}) {
        std::vector<Model> found(static_cast<std::size_t>(n));
        ThreadGroup::run(
            n, [&](auto& ranks) { found[std::size_t(ranks.rank())] = train(ranks, shards, sequences); });
        for (const Model& model : found) REQUIRE(model == expected);
    }
    // The same text cut otherwise: other sums, which agree but for rounding.
    const Model whole = train(alone, 1, sequences);
    REQUIRE_FALSE(whole == expected);
    for (std::size_t k = 0; k < whole.emission.size(); ++k)
        REQUIRE(whole.emission[k] == Approx(expected.emission[k]).epsilon(1e-9).margin(1e-12));
}

TEST_CASE("One shard is a step of the model itself", "[distributed][hmm]") {
    const auto sequences = texts(30);
    Alone alone;
    const Model found = train(alone, 1, sequences);
    hmm::Hmm m({.states = 9, .symbols = 6, .prior = 0.01});
    for (int k = 0; k < 4; ++k) REQUIRE(m.step(sequences) == found.likelihoods[std::size_t(k)]);
    REQUIRE(m.emission() == found.emission);
    REQUIRE(m.transition() == found.transition);
}

TEST_CASE("Sequences over ranks may be parts of one array of tokens", "[distributed][hmm]") {
    const auto sequences = texts(12);
    const std::vector<std::span<const Token>> parts(sequences.begin(), sequences.end());
    Alone alone;
    hmm::Hmm a({.states = 9, .symbols = 6}), b = a;
    REQUIRE(baum_welch_step(a, parts, alone, 3) == baum_welch_step(b, sequences, alone, 3));
    REQUIRE(a.emission() == b.emission());
}

TEST_CASE("Shards of sequences are consecutive and have about as many symbols each", "[distributed][hmm]") {
    const auto sequences = texts(200);
    Index all = 0;
    for (const auto& x : sequences) all += std::ssize(x);
    for (const Index shards : {1, 2, 3, 8}) {
        const auto first = distributed::detail::shards_of_sequences(sequences, shards);
        REQUIRE(first.size() == std::size_t(shards) + 1);
        REQUIRE(first.front() == 0);
        REQUIRE(first.back() == std::ssize(sequences));
        for (std::size_t s = 0; s < std::size_t(shards); ++s) {
            REQUIRE(first[s] <= first[s + 1]);
            Index symbols = 0;
            for (Index k = first[s]; k < first[s + 1]; ++k) symbols += std::ssize(sequences[std::size_t(k)]);
            REQUIRE(std::abs(symbols - all / shards) <= 41);
        }
    }
    // One sequence for four shards, and no sequence at all.
    const auto one = distributed::detail::shards_of_sequences(std::span(sequences).subspan(1, 1), 4);
    REQUIRE(one.back() == 1);
    REQUIRE(distributed::detail::shards_of_sequences({}, 3) == Array<Index>{0, 0, 0, 0});
}

TEST_CASE("Ranks that share a hidden Markov model say what is wrong", "[distributed][hmm]") {
    const auto sequences = texts(8);
    REQUIRE_THROWS_MATCHES(ThreadGroup::run(3, [&](auto& ranks) { train(ranks, 2, sequences); }), UsageError,
                           says("found shards = 2", "expected 3"));
    auto wrong = sequences;
    wrong.back().push_back(6);
    REQUIRE_THROWS_MATCHES(ThreadGroup::run(2, [&](auto& ranks) { train(ranks, 2, wrong); }), DataError,
                           says("found symbol 6", "of sequence 7,"));
    // On every rank, where they do not share what they must.
    for (const char* what : {"shards", "states", "symbols", "checksum of initial, transition and emission"}) {
        INFO(what);
        const std::string name = what;
        std::array<std::string, 2> refused;  // by rank
        ThreadGroup::run(2, [&](auto& ranks) {
            const auto here = [&](const char* is) { return ranks.rank() == 1 && name == is; };
            hmm::Hmm m({.states = here("states") ? 3 : 2, .symbols = here("symbols") ? 7 : 6});
            if (name[0] == 'c' && ranks.rank() == 1) m = hmm::Hmm({.states = 2, .symbols = 6, .seed = 2});
            const auto before = m.emission();
            try {
                baum_welch_step(m, sequences, ranks, here("shards") ? 6 : 4);
            } catch (const UsageError& error) {
                if (m.emission() == before) refused[std::size_t(ranks.rank())] = error.what();
            }
        });
        for (const std::string& text : refused) {
            REQUIRE_THAT(text, Catch::Matchers::ContainsSubstring("baum_welch_step: found " + name + " = "));
            REQUIRE_THAT(text,
                         Catch::Matchers::ContainsSubstring(" on rank 0, expected the same on every rank"));
        }
    }
    Alone alone;
    hmm::Hmm m({.states = 2, .symbols = 6});
    REQUIRE_THROWS_MATCHES(baum_welch_step(m, sequences, alone, 0), UsageError, says("shards = 0"));
}
