// Sampling: a graph built for batches runs one character at a time on the same buffers.
#include <cstdio>
#include <isogloss/isogloss.hpp>
#include <isogloss/text.hpp>

namespace ig = isogloss;

int main() {
    const std::string path = ISOGLOSS_EXAMPLES_DATA "/tinyshakespeare.txt";
    const auto vocabulary = ig::text::Vocabulary::from_file(path, {.level = ig::text::Level::character});
    const auto corpus = ig::text::Corpus::read(path, vocabulary);
    const ig::Index V = vocabulary.size();

    ig::Graph<float> g({.time = 50, .batch = 32});
    auto x = g.tokens("x", V), y = g.tokens("y", V);
    auto E = g.weight("E", V, 128, ig::uniform(0.1));
    auto h = g.add<ig::Lstm>("lstm", {.units = 128}, g.add<ig::Embedding>("embed", {}, x, E));
    auto o = g.add<ig::TiedSoftmax>("softmax", {}, h, E);
    auto l = g.add<ig::CrossEntropy>("loss", {}, o, y);
    ig::Adam adam(g.parameters(), {.rate = 0.003, .clip = 5, .divisor = ig::Divisor::batch});

    ig::Perplexity perplexity;
    for (auto batch : corpus.batches(g.capacity())) {
        const double nats = g.forward(l, {x, batch.input}, {y, batch.target});
        perplexity.add(nats, g.result(l).predicted(), g.result(l).predicted());
        g.backward(l);
        adam.step();
        if (batch.index % 100 != 99) continue;
        std::printf("batch %td: %.2f bits a character\n", batch.index + 1, perplexity.bits_per_character());
        perplexity = {};
        if (batch.index + 1 == 400) break;
    }

    g.training(false);
    g.reset();
    const ig::Random random(1, ig::stream_of("sampling"));
    std::vector<ig::Token> text = {vocabulary["\n"]};
    std::vector<float> p(static_cast<std::size_t>(V));
    for (ig::Index i = 0; i < 300; ++i) {
        g.forward(o, {x, std::span<const ig::Token>(&text.back(), 1)});  // T = B = 1; the state is carried
        g.head(o).probabilities(0, {p.data(), 1, V}, 0.7);
        text.push_back(ig::sample(p, random.uniform(i)));
    }
    std::printf("%s\n", vocabulary.decode(text).c_str());
}

// batch 400: 2.87 bits a character                 (after three such lines)
// YlRUKY.E VEY:                                                 (the text depends on the processor's rounding)
// Whar, proth hing the me is he deard pacaly betile of me on us in to seat.
//
// BUMIONUS:
// Mace and of the proodide abling manten
// The will you sut he thet the my beer is be ise
