// A tagger with two inputs: the word and its ending. Trains on the first of the given files of Universal
// Dependencies: english_tagger train.conllu dev.conllu test.conllu
#include <cstdio>
#include <isogloss/isogloss.hpp>

#include "../shared/tagged_sentences.hpp"

namespace ig = isogloss;

int main(int argc, char** argv) try {
    const std::string data = ISOGLOSS_EXAMPLES_DATA;
    std::vector<std::string> files(argv + 1, argv + argc);
    if (files.empty()) files = {data + "/sentences.train.conllu", data + "/sentences.dev.conllu"};
    if (files.size() == 1) throw ig::UsageError("usage: english_tagger TRAIN.conllu TEST.conllu ...");
    constexpr ig::Index B = 32;
    tagged::Numbers numbers;
    std::vector<std::vector<tagged::Batch>> texts;
    ig::Index longest = 0;
    for (const auto& file : files) {
        texts.push_back(tagged::read(file, numbers, B, texts.empty()));
        longest = std::max(longest, texts.back().back().time);
    }
    ig::Graph<float> g({.time = longest, .batch = B});
    auto word = g.tokens("word", numbers.word.size()), end = g.tokens("end", numbers.end.size());
    auto tag = g.tokens("tag", std::ssize(numbers.tags.names));
    auto E = g.weight("E", word.vocabulary, 100, ig::uniform(0.1));
    auto F = g.weight("F", end.vocabulary, 50, ig::uniform(0.1));
    auto e = g.add<ig::Concatenate>("e", {}, g.add<ig::Embedding>("words", {.keep = 0.5}, word, E),
                                    g.add<ig::Embedding>("ends", {.keep = 0.5}, end, F));
    auto turned = g.add<ig::Reverse>("turned", {}, e, tag);
    auto left = g.add<ig::Lstm>("left", {.units = 100, .keep = 0.7}, turned);
    auto right = g.add<ig::Lstm>("right", {.units = 100, .keep = 0.7}, e);
    auto both = g.add<ig::Concatenate>("both", {}, right, g.add<ig::Reverse>("back", {}, left, tag));
    auto o = g.add<ig::Softmax>("tags", {.vocabulary = tag.vocabulary}, both);
    auto l = g.add<ig::CrossEntropy>("loss", {}, o, tag);
    ig::Adam<float> adam(g.parameters(), {.rate = 0.005, .divisor = ig::Divisor::tokens});

    const auto forward = [&](auto to, const tagged::Batch& b) {  // to the loss, or to the logits
        g.reset();
        g.forward(to, {word, b.block(b.word)}, {end, b.block(b.end)}, {tag, b.block(b.tag)});
    };
    const ig::Random random(1, 1);
    for (ig::Index step = 0, n = std::ssize(texts[0]); step < std::max<ig::Index>(80, 6 * n); ++step) {
        forward(l, texts[0][std::size_t(random.below(step, n))]);
        g.backward(l);
        adam.step();
    }
    g.training(false);
    for (std::size_t k = 1; k < files.size(); ++k) {
        ig::Index correct = 0, all = 0;
        for (const auto& b : texts[k]) {
            forward(o, b);
            correct += tagged::count_correct(g.head(o).logits(), b);
            all += tagged::count(b);
        }
        std::printf("%s: %.2f %% of %td tags\n", files[k].c_str(), 100. * double(correct) / double(all), all);
        if (argc == 1 && 5 * correct < 4 * all) return 1;  // the tests expect four fifths of the bundled text
    }
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
