// Sentences of different lengths, read in both directions: a tagger that must look ahead. In its language
// "set" and "run" are verbs before "the" and nouns elsewhere.
#include <algorithm>
#include <cstdio>
#include <isogloss/isogloss.hpp>

namespace ig = isogloss;

constexpr ig::Index T = 8, B = 16;
enum Word : ig::Token { the, set, run, dog, sun, words };
enum Tag : ig::Token { determiner, noun, verb, tags };

// A batch [T, B] of sentences, one in each column. After its end a column has arbitrary words and no tags.
struct Sentences {
    ig::Token word[T * B] = {}, tag[T * B];

    explicit Sentences(std::uint64_t seed) {
        const ig::Random random(seed, 1);
        std::fill_n(tag, T * B, ig::not_predicted);
        for (ig::Index b = 0; b < B; ++b)
            for (ig::Index length = 2 + random.below(b, T - 1), t = length - 1; t >= 0; --t) {
                const ig::Index i = t * B + b;
                word[i] = static_cast<ig::Token>(random.below(B + i, words));
                const bool acts = (word[i] == set || word[i] == run) && t + 1 < length && word[i + B] == the;
                tag[i] = word[i] == the ? determiner : acts ? verb : noun;
            }
    }
};

int main() {
    ig::Graph<float> g({.time = T, .batch = B});
    auto x = g.tokens("x", words), y = g.tokens("y", tags);
    auto e = g.add<ig::Embedding>("embed", {}, x, g.weight("E", words, 8, ig::uniform(0.5)));
    auto right = g.add<ig::Lstm>("right", {.units = 8}, e);
    auto left = g.add<ig::Lstm>("left", {.units = 8}, g.add<ig::Reverse>("turned", {}, e, y));
    auto both = g.add<ig::Concatenate>("both", {}, right, g.add<ig::Reverse>("back", {}, left, y));
    auto o = g.add<ig::Softmax>("tags", {.vocabulary = tags}, both);
    auto l = g.add<ig::CrossEntropy>("loss", {}, o, y);
    ig::Adam<float> adam(g.parameters(), {.rate = 0.01});
    const auto forward = [&](const Sentences& s) {
        g.reset();  // sentences are complete: no state is carried between batches
        g.forward(l, {x, {s.word, T, B}}, {y, {s.tag, T, B}});
    };
    for (std::uint64_t step = 1; step <= 300; ++step) {
        forward(Sentences(step));
        g.backward(l);
        adam.step();
    }
    const Sentences test(1000);
    g.training(false);
    forward(test);
    const auto p = g.head(o).probabilities();  // [T B, tags]
    int correct = 0;
    for (ig::Index i = 0; i < T * B; ++i)
        correct += std::max_element(&p(i, 0), &p(i, 0) + tags) - &p(i, 0) == test.tag[i];
    std::printf("%d of %td tags are right\n", correct, g.result(l).predicted());
    return correct == g.result(l).predicted() ? 0 : 1;
}

// 75 of 75 tags are right
