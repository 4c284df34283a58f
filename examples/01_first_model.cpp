// A tied two-layer LSTM language model: one epoch on the bundled text, its perplexity beside that of the
// unigram model, which only counts words, and a sample.
#include <cmath>
#include <cstdio>
#include <isogloss/evaluation.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/text.hpp>
#include <string>
#include <vector>

namespace ig = isogloss;

int main(int argc, char**) {
    const std::string path = ISOGLOSS_EXAMPLES_DATA "/tinyshakespeare.txt";
    const auto vocabulary = ig::text::Vocabulary::from_file(path, {.min_count = 3});
    const auto text = ig::text::Corpus::read(path, vocabulary);
    const auto train = text.part(0, text.size() * 9 / 10, vocabulary);
    const auto valid = text.part(train.size(), text.size(), vocabulary);
    const ig::Index V = vocabulary.size();
    std::printf("%td words and line ends to train on, %td to validate on, %td types\n", train.size(),
                valid.size(), V);

    ig::threads(2);
    ig::Graph<float> g({.time = 35, .batch = 20});
    auto x = g.tokens("x", V), y = g.tokens("y", V);
    auto E = g.weight("E", V, 200, ig::uniform(0.1));
    auto h = g.add<ig::Embedding>("embed", {.keep = 0.8}, x, E);  // variational dropout, keep probability
    h = g.add<ig::Lstm>("lstm1", {.units = 200, .keep = 0.8}, h);
    h = g.add<ig::Lstm>("lstm2", {.units = 200, .keep = 0.8}, h);
    auto o = g.add<ig::TiedSoftmax>("softmax", {.bias = true}, h, E);  // the same E: tied
    auto l = g.add<ig::CrossEntropy>("loss", {}, o, y);
    ig::Sgd sgd(g.parameters(), {.rate = 1, .clip = 5});

    ig::Perplexity seen;
    for (const auto& batch : train.batches(g.capacity())) {
        g.forward(l, {x, batch.input}, {y, batch.target});
        g.backward(l);
        sgd.step();

        seen.add(g.result(l).cross_entropy(), g.result(l).predicted());
        if (argc > 1 && batch.index == 40) break;  // with any argument, a short run
        if (batch.index % 100 != 99) continue;
        std::printf("batch %3td: perplexity %.0f of the last 100\n", batch.index + 1, seen.value());
        seen = {};
    }
    const auto batches =
        valid.batches(g.capacity(), {.tail = ig::text::Tail::pad, .predict_first = vocabulary.eos()});
    std::printf("validation: perplexity %.1f, unigram model %.1f\n",
                ig::evaluate(g, l, x, y, batches).value(),
                std::exp(ig::unigram_cross_entropy(vocabulary, valid)));

    g.training(false);
    g.reset();
    const ig::Random random(1, ig::stream_of("sample"));
    std::vector<float> p(static_cast<std::size_t>(V));
    std::vector<ig::Token> said;
    ig::Token word = vocabulary.eos();
    for (ig::Index k = 0; k < 60; ++k) {  // one word at a time; the state is carried
        g.forward(o, {x, ig::TokenBlock{&word, 1, 1}});
        g.head(o).probabilities(0, {p.data(), 1, V}, 0.8);
        p[static_cast<std::size_t>(vocabulary.unk())] = 0;  // never say <unk>
        said.push_back(word = ig::sample(p, random.uniform(k)));
    }
    std::printf("%s\n", vocabulary.decode(said).c_str());
}

// 218385 words and line ends to train on, 24266 to validate on, 7034 types
// batch 100: perplexity 804 of the last 100
// batch 200: perplexity 280 of the last 100
// batch 300: perplexity 210 of the last 100
// validation: perplexity 187.7, unigram model 311.3
// To do you so fawn that I may courts            (the text depends on the processor's rounding)
// And night; your more and your other souls, with his gods
// Where had to power and this to-night. is this suppose
