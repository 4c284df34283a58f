// An n-best list of a speech recogniser or a translator, rescored by a language model. The texts are columns
// of a batch, and the prefixes that they share are read once.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <isogloss/evaluation.hpp>
#include <isogloss/isogloss.hpp>

namespace ig = isogloss;
using Text = std::vector<ig::Token>;

int main() {
    const std::string path = ISOGLOSS_EXAMPLES_DATA "/tinyshakespeare.txt";
    const auto vocabulary = ig::text::Vocabulary::from_file(path, {.level = ig::text::Level::character});
    const auto text = ig::text::Corpus::read(path, vocabulary).part(0, 100000, vocabulary);
    ig::Graph<float> g({.time = 35, .batch = 32});
    auto x = g.tokens("x", vocabulary.size()), y = g.tokens("y", vocabulary.size());
    auto E = g.weight("E", vocabulary.size(), 64, ig::uniform(0.1));
    auto h = g.add<ig::Lstm>("lstm", {.units = 64}, g.add<ig::Embedding>("embed", {}, x, E));
    auto o = g.add<ig::TiedSoftmax>("softmax", {.bias = true}, h, E);
    auto l = g.add<ig::CrossEntropy>("loss", {}, o, y);
    ig::Adam<float> adam(g.parameters(), {.rate = 0.01});
    for (const auto& batch : text.batches(g.capacity())) {
        g.forward(l, {x, batch.input}, {y, batch.target});
        g.backward(l);
        adam.step();
    }

    struct Hypothesis {
        std::string text;
        double recogniser;  // its score: log p(sound | text)
        double total = 0;
    };
    std::vector<Hypothesis> list = {{"we are ac count ed pore cities ends", -9},
                                    {"we are accounted poor citizens", -11},
                                    {"we are a counted pour sit is ends", -12},
                                    {"we are accounted pour citizens", -14}};
    std::vector<Text> texts;
    for (const auto& one : list)
        vocabulary.encode_prefix(one.text, texts.emplace_back(Text{vocabulary["\n"]}));
    const auto scores = ig::score_hypotheses(g, x, o, std::span<const Text>(texts));
    for (std::size_t i = 0; i < list.size(); ++i)
        list[i].total = list[i].recogniser + scores.log_probability[i];
    std::ranges::sort(list, std::greater{}, &Hypothesis::total);
    for (const auto& one : list) std::printf("%6.1f  %s\n", one.total, one.text.c_str());
    std::size_t apart = 0;
    for (const auto& one : texts) apart += one.size() - 1;
    std::printf("%td positions were read, %zu by themselves\n", scores.positions, apart);
    return list[0].text == "we are accounted poor citizens" ? 0 : 1;
}

//  -87.6  we are accounted poor citizens
//  -89.0  we are accounted pour citizens
//  -91.1  we are a counted pour sit is ends
//  -96.7  we are ac count ed pore cities ends
// 89 positions were read, 128 by themselves
