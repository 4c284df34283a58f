// The chain model of lds_text against all sequences of tags, one by one, and the features it sees.
#include "../../programs/lds_text/chain_model.hpp"

#include <cmath>
#include <isogloss/random.hpp>
#include <set>

#include "catch.hpp"

using namespace lt;

namespace {

constexpr ig::Index K = 3, F = 7, d = 2, N = 5;

// Two sentences, of 4 words and of 1, with random features, vectors and tags.
ChainText example() {
    const ig::Random random(4, 9);
    ChainText text;
    text.width = d;
    text.starts = {0, 4, 5};
    for (ig::Index i = 0; i < N; ++i) {
        for (ig::Index f = 0; f < F; ++f)
            if (random.uniform(i * F + f) < 0.4) text.features.list.push_back(static_cast<std::int32_t>(f));
        text.features.first.push_back(text.features.list.size());
        text.tags.push_back(static_cast<ig::Token>(random.below(1000 + i, K)));
        for (ig::Index j = 0; j < d; ++j)
            text.vectors.push_back(static_cast<float>(random.normal(2000 + i * d + j)));
    }
    return text;
}

ChainModel learnt(const ChainText& text, int rounds) {
    ChainModel model({.tags = K, .features = F, .width = d, .rate = 0.5});
    for (int i = 0; i < rounds; ++i)
        for (const std::size_t s : {0, 1}) model.learn(text, s);
    return model;
}

// The score of a sequence of tags of n words, from the scores of words and moves.
double path(const ChainModel& model, const ig::Array<double>& s, const std::vector<ig::Index>& tags) {
    double sum = 0;
    for (std::size_t t = 0; t < tags.size(); ++t) {
        sum += s[ig::Index(t) * K + tags[t]];
        if (t > 0) sum += double(model.moves()[tags[t - 1] * K + tags[t]]);
    }
    return sum;
}

template <class Each> void all_paths(ig::Index n, Each&& each) {
    ig::Index paths = 1;
    for (ig::Index t = 0; t < n; ++t) paths *= K;
    for (ig::Index number = 0; number < paths; ++number) {
        std::vector<ig::Index> tags;
        for (ig::Index t = 0, rest = number; t < n; ++t, rest /= K) tags.push_back(rest % K);
        each(tags);
    }
}

}  // namespace

TEST_CASE("A chain model's likelihood, expected counts and best tags are those of all sequences",
          "[lds_text][chain]") {
    const ChainText text = example();
    const ChainModel model = learnt(text, 3);
    for (const std::size_t sentence : {0, 1}) {
        const auto first = ig::Index(text.starts[sentence]), n = ig::Index(text.starts[sentence + 1]) - first;
        const auto s = model.scores(text, sentence);
        std::vector<ig::Index> gold, best;
        for (ig::Index t = 0; t < n; ++t) gold.push_back(text.tags[std::size_t(first + t)]);
        double Z = 0, most = -1e300;
        all_paths(n, [&](const auto& tags) {
            Z += std::exp(path(model, s, tags));
            if (path(model, s, tags) > most) most = path(model, s, tags), best = tags;
        });
        ig::Array<double> of_tags(n * K), of_moves(K * K);
        all_paths(n, [&](const auto& tags) {
            const double p = std::exp(path(model, s, tags)) / Z;
            for (std::size_t t = 0; t < tags.size(); ++t) {
                of_tags[ig::Index(t) * K + tags[t]] -= p;
                if (t > 0) of_moves[tags[t - 1] * K + tags[t]] -= p;
            }
        });
        for (std::size_t t = 0; t < gold.size(); ++t) {
            of_tags[ig::Index(t) * K + gold[t]] += 1;
            if (t > 0) of_moves[gold[t - 1] * K + gold[t]] += 1;
        }
        const auto g = model.gradient(text, sentence);
        CHECK(g.log_likelihood == Approx(path(model, s, gold) - std::log(Z)).epsilon(1e-12));
        for (ig::Index i = 0; i < n * K; ++i) CHECK(g.tags[i] == Approx(of_tags[i]).margin(1e-12));
        for (ig::Index i = 0; i < K * K; ++i) CHECK(g.moves[i] == Approx(of_moves[i]).margin(1e-12));
        const auto found = model.best_tags(text, sentence);
        CHECK(std::vector<ig::Index>(found.begin(), found.end()) == best);
    }
}

TEST_CASE("A chain model learns what features, vectors and neighbours tell", "[lds_text][chain]") {
    const ChainText text = example();
    const ChainModel before = learnt(text, 0), after = learnt(text, 60);
    CHECK(before.gradient(text, 0).log_likelihood == Approx(-4 * std::log(3)));
    CHECK(after.gradient(text, 0).log_likelihood > -0.05);
    CHECK(after.best_tags(text, 0) == std::vector<ig::Token>(text.tags.begin(), text.tags.begin() + 4));
    // scores of thousands neither overflow nor vanish
    ChainText large = text;
    for (float& v : large.vectors) v *= 1e5F;
    CHECK(std::isfinite(after.gradient(large, 0).log_likelihood));
    REQUIRE_THROWS_MATCHES(ChainModel({.tags = 2, .features = 1, .width = 0, .rate = 0}), isogloss::Error,
                           says("rate = 0"));
}

TEST_CASE("Features of words: shapes, and none that the training text has too rarely", "[lds_text][chain]") {
    CHECK(shape("McDonald's") == "XxXx'x");
    CHECK(shape("1,000") == "0,0");
    CHECK(shape("U.N.") == "X.X.");
    const tagged::Text train{{"the", "Cat", "the", "Dog"}, {0, 1, 0, 1}, {0, 2, 4}};
    const LexicalFeatures often(train, 2), all(train, 1);
    CHECK(often.size() < all.size());
    const auto lists = often(train);
    REQUIRE(lists.first.size() == 5);
    const auto of = [&](std::size_t i) {
        return std::set<std::int32_t>(lists.list.begin() + std::ptrdiff_t(lists.first[i]),
                                      lists.list.begin() + std::ptrdiff_t(lists.first[i + 1]));
    };
    CHECK(of(0) == of(2));  // the same word, shapes and edges; "Cat" and "Dog" are too rare
    CHECK(of(1) == of(3));
    CHECK(of(0) != of(1));
    // a word that was never seen keeps what it shares with others
    const tagged::Text other{{"the", "Cow"}, {0, 1}, {0, 2}};
    const auto seen = often(other);
    CHECK(seen.first[2] > seen.first[1]);
    CHECK(seen.list.size() < lists.list.size() / 2 + 1);
}
