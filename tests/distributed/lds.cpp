// EM and subspace identification by several ranks, against one and against the functions for one process.
#include <isogloss/distributed/lds.hpp>
#include <isogloss/distributed/thread_group.hpp>

#include "catch.hpp"
#include "lds/texts.hpp"

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::lds;
using namespace isogloss::distributed;
using texts::difference;

namespace {

constexpr Index V = 61;

template <class T> struct Fitted {
    std::vector<T> C;
    std::vector<double> A, M, likelihoods, singular_values;
    bool operator==(const Fitted&) const = default;
};

// Subspace identification and three iterations of EM.
template <class T, class C> Fitted<T> fit(const LagMoments<T>& moments, C& ranks, Index shards) {
    auto found = subspace_identification(moments, {.states = 5, .lags = 2}, ranks);
    auto& s = found.system;
    Fitted<T> out;
    out.singular_values = found.singular_values;
    for (int i = 0; i < 3; ++i) {
        auto statistics = asos_statistics(s, steady_state(s), moments, 4, ranks, shards);
        out.likelihoods.push_back(statistics.log_likelihood);
        maximise(std::move(statistics), s);
    }
    out.C.assign(s.C.data(), s.C.data() + s.C.size());
    out.A.assign(s.A.data(), s.A.data() + s.A.size());
    out.M.assign(s.M.data(), s.M.data() + s.M.size());
    return out;
}

}  // namespace

TEMPLATE_TEST_CASE("Any number of ranks fits the system of one, to the bit", "[distributed][lds]", float,
                   double) {
    using T = TestType;
    const auto tokens = texts::markov(4000, V - 1);  // one word never occurs
    LagCounts counts(V, {.lags = 4});
    counts.add(tokens);
    const TextPairs text(tokens, V, {.lags = 4});
    for (const bool stored : {true, false}) {
        const LagMoments<T> moments = stored ? LagMoments<T>(counts) : LagMoments<T>(text);
        Alone alone;
        for (const Index shards : {4, 7}) {
            const auto expected = fit(moments, alone, shards);
            for (const Index n : {2, 3, 4}) {
                std::vector<Fitted<T>> found(static_cast<std::size_t>(n));
                ThreadGroup::run(n, [&](auto& ranks) {
                    // one for each, as on machines that share no memory
                    const LagMoments<T> own = stored ? LagMoments<T>(counts) : LagMoments<T>(text);
                    found[static_cast<std::size_t>(ranks.rank())] = fit(own, ranks, shards);
                });
                for (const auto& f : found) REQUIRE(f == expected);
            }
        }
    }
}

TEMPLATE_TEST_CASE("Statistics by shards of words are those of all words", "[distributed][lds]", float,
                   double) {
    using T = TestType;
    const double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-11;
    LagCounts counts(V, {.lags = 4});
    counts.add(texts::markov(20000, V - 1));
    const LagMoments<T> moments(counts);
    Alone alone;
    const auto one = subspace_identification(moments, {.states = 5, .lags = 2}),
               shared = subspace_identification(moments, {.states = 5, .lags = 2}, alone);
    for (std::size_t i = 0; i < 5; ++i)
        CHECK(shared.singular_values[i] == Approx(one.singular_values[i]).epsilon(tolerance));
    const auto& s = one.system;
    const auto expected = asos_statistics(s, steady_state(s), moments, 4);
    for (const Index shards : {1, 3, 80}) {  // more shards than words, so that some are empty
        const auto found = asos_statistics(s, steady_state(s), moments, 4, alone, shards);
        CHECK(difference(found.yx, expected.yx) < tolerance);
        CHECK(difference(found.xx, expected.xx) < tolerance);
        CHECK(difference(found.xx_1, expected.xx_1) < tolerance);
        CHECK(found.log_likelihood == Approx(expected.log_likelihood).epsilon(tolerance));
    }
}

TEMPLATE_TEST_CASE("Rows of a product are the same bits whatever the range", "[lds][moments]", float,
                   double) {
    using T = TestType;
    const auto tokens = texts::markov(2000, V - 1);
    LagCounts counts(V, {.lags = 2});
    counts.add(tokens);
    const TextPairs text(tokens, V, {.lags = 2});
    TallMatrix<T> x = zeros<T>(V, 20);
    const Random random(4, 9);
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<T>(random.normal(Index(i)));
    for (const auto& moments : {LagMoments<T>(counts), LagMoments<T>(text)}) {
        const auto z = moments.weighted(ref(x));
        for (Index k = 1; k <= 2; ++k) {
            TallMatrix<T> all = zeros<T>(V, 20), all_t = all, part = zeros<T>(9, 20), psi = all;
            moments.apply_rows(k, ref(z), 0, V, ref(all));
            moments.apply_transposed_rows(k, ref(z), 0, V, ref(all_t));
            for (const Index first : {0, 7, 52}) {
                moments.apply_rows(k, ref(z), first, first + 9, ref(part));
                CHECK(std::equal(part.data(), part.data() + part.size(), all.data() + first * 20));
                moments.apply_transposed_rows(k, ref(z), first, first + 9, ref(part));
                CHECK(std::equal(part.data(), part.data() + part.size(), all_t.data() + first * 20));
            }
            moments.apply_transposed(k, ref(x), ref(psi));
            project_out<T>(moments.whitening().m, ref(all_t));
            CHECK(difference(all_t, psi) < 1e-6);
        }
    }
}

TEST_CASE("Ranges of words cost about the same", "[distributed][lds]") {
    constexpr Index words = 400;
    const Random random(1, 5);
    std::vector<Token> tokens;  // the first words are the frequent ones, as in a vocabulary
    for (Index t = 0; t < 8000; ++t)
        tokens.push_back(static_cast<Token>(double(words) * std::pow(random.uniform(t), 4)));
    LagCounts counts(words, {.lags = 2});
    counts.add(tokens);
    const LagMoments<double> moments(counts);
    const auto cost = [&](Index first, Index last) {
        double sum = 0;
        for (Index i = first; i < last; ++i) sum += double(moments.row_terms(i)) + 1;
        return sum;
    };
    double most = 0;
    for (Index i = 0; i < words; ++i) most = std::max(most, cost(i, i + 1));
    REQUIRE(most < cost(0, words) / 10);
    for (const Index ranges : {1, 2, 5}) {
        const auto first = distributed::detail::ranges_of_words(moments, 1, ranges);
        REQUIRE(std::ssize(first) == ranges + 1);
        REQUIRE(first.front() == 0);
        REQUIRE(first.back() == words);
        for (Index r = 0; r < ranges; ++r)
            REQUIRE(std::abs(cost(first[r], first[r + 1]) - cost(0, words) / double(ranges)) <= most);
    }
}

TEST_CASE("Ranks that share a fit say what is wrong", "[distributed][lds]") {
    LagCounts counts(V, {.lags = 4});
    counts.add(texts::markov(2000, V));
    REQUIRE_THROWS_MATCHES(ThreadGroup::run(3,
                                            [&](auto& ranks) {
                                                const LagMoments<float> own(counts);
                                                fit(own, ranks, 2);
                                            }),
                           UsageError, says("shards = 2", "3 to"));
    Alone alone;
    const LagMoments<float> moments(counts);
    const auto s = subspace_identification(moments, {.states = 5, .lags = 2}, alone).system;
    for (const bool horizon : {false, true}) {
        std::array<std::string, 2> refused;  // by rank
        ThreadGroup::run(2, [&](auto& ranks) {
            const Index own = ranks.rank() == 0 ? 0 : 2;
            try {
                asos_statistics(s, steady_state(s), moments, horizon ? 2 + own : 4, ranks,
                                horizon ? 4 : 4 + own);
            } catch (const UsageError& error) {
                refused[std::size_t(ranks.rank())] = error.what();
            }
        });
        for (const std::string& text : refused)
            REQUIRE_THAT(text, Catch::Matchers::ContainsSubstring(
                                   horizon ? "ASOS: found horizon = 4 on rank 1 and 2 on rank 0"
                                           : "ASOS: found shards = 6 on rank 1 and 4 on rank 0"));
    }
    REQUIRE_THROWS_MATCHES(subspace_identification(moments, {.states = 5, .lags = 3}, alone), UsageError,
                           says("moments of 4", "twice as many less 1"));
}
