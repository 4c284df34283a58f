// Beam search: hypotheses are the columns of a batch, and a column can continue from the state of any other.
// Greedy search fails in this language: crossings are more frequent than roads, but lead to four places.
#include <algorithm>
#include <cstdio>
#include <isogloss/isogloss.hpp>
#include <isogloss/text.hpp>

namespace ig = isogloss;

enum Word : ig::Token { begin, crossing, road, home, north, east, south, west, words };

struct Hypothesis {
    std::vector<ig::Token> text;
    double log_p = 0;
    ig::Index column = 0;  // whose state it continues
};

// The best text with `length` more words that a search with `width` hypotheses finds.
Hypothesis search(ig::Graph<float>& g, ig::Tokens x, ig::Logits<float> o, ig::Index width, int length) {
    std::vector<Hypothesis> beam = {{.text = {begin}}};
    g.reset();
    g.forward(o, {x, beam[0].text});
    while (length-- > 0) {
        std::vector<Hypothesis> longer;
        for (const auto& next : ig::top_k(g, o, width)) {  // of column b, which is hypothesis b
            const std::size_t b = longer.size() / std::size_t(width);
            for (const auto& [word, log_p] : next) {
                longer.push_back({beam[b].text, beam[b].log_p + log_p, ig::Index(b)});
                longer.back().text.push_back(word);
            }
        }
        std::sort(longer.begin(), longer.end(), [](auto& a, auto& b) { return a.log_p > b.log_p; });
        beam.assign(longer.begin(), longer.begin() + width);
        std::vector<ig::Index> columns;
        std::vector<ig::Token> last;
        for (const auto& h : beam) {
            columns.push_back(h.column);
            last.push_back(h.text.back());
        }
        g.states().copy(columns);
        g.forward(o, {x, {last.data(), 1, width}});
    }
    return beam[0];
}

int main() {
    std::vector<ig::Token> text;
    const ig::Random random(1, 1);
    for (ig::Index i = 0; i < 5000; ++i) {
        const auto r = static_cast<ig::Token>(random.below(i, 20));
        text.insert(text.end(), {begin, r < 8 ? road : crossing, r < 8 ? home : north + r % 4});
    }

    ig::Graph<float> g({.time = 12, .batch = 10});
    auto x = g.tokens("x", words), y = g.tokens("y", words);
    auto e = g.add<ig::Embedding>("embed", {}, x, g.weight("E", words, 8, ig::uniform(1)));
    auto o = g.add<ig::Softmax>("softmax", {.vocabulary = words}, g.add<ig::Gru>("gru", {.units = 16}, e));
    auto l = g.add<ig::CrossEntropy>("loss", {}, o, y);
    ig::Adam<float> adam(g.parameters(), {.rate = 0.02});
    for (const auto& batch : ig::text::Corpus::from_tokens(text, words).batches(g.capacity())) {
        g.forward(l, {x, batch.input}, {y, batch.target});
        g.backward(l);
        adam.step();
    }

    g.training(false);
    const auto greedy = search(g, x, o, 1, 2), best = search(g, x, o, 3, 2);
    std::printf("log p: %.2f by the best next word, %.2f by a beam of 3\n", greedy.log_p, best.log_p);
    return greedy.text[1] == crossing && best.text == std::vector<ig::Token>{begin, road, home} ? 0 : 1;
}

// log p: -1.73 by the best next word, -1.03 by a beam of 3
