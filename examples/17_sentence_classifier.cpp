// Is a sentence a question? It is classified at its last word only, from the state that has seen all words.
#include <cctype>
#include <cmath>
#include <cstdio>
#include <isogloss/file/reader.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/word_index.hpp>

namespace ig = isogloss;
constexpr ig::Index T = 16, B = 25;
using Sentence = std::pair<std::vector<ig::Token>, ig::Token>;  // its words, and whether it is a question

// The sentences of 3 to T words of a text, lower-cased, without punctuation; questions and others alternate.
std::vector<Sentence> read(const std::string& path, ig::WordIndex& known) {
    std::vector<Sentence> all;
    std::vector<ig::Token> words;
    std::string word;
    ig::file::LineReader lines(path);
    for (std::string_view line; lines.next(line);)
        for (const unsigned char c : std::string(line) + " ") {  // <cctype> takes no negative char
            if (std::isalpha(c)) {
                word += static_cast<char>(std::tolower(c));
            } else if (!word.empty()) {
                words.push_back(known.insert(word));
                word.clear();
            }
            const bool fits = std::ssize(words) >= 3 && std::ssize(words) <= T, question = c == '?';
            if ((c == '?' || c == '.') && fits && question == std::ssize(all) % 2)
                all.emplace_back(words, question);
            if (c == '?' || c == '.' || c == '!' || c == ':') words.clear();  // "ROMEO:" is not part of it
        }
    return all;
}

int main() {
    ig::WordIndex known;
    const auto sentences = read(std::string(ISOGLOSS_EXAMPLES_DATA) + "/tinyshakespeare.txt", known);
    const ig::Index batches = std::ssize(sentences) / B, held_out = batches / 10;
    ig::Graph<float> g({.time = T, .batch = B});
    auto x = g.tokens("words", known.size()), y = g.tokens("question", 2);
    auto E = g.weight("E", known.size(), 32, ig::uniform(0.1));
    auto h = g.add<ig::Lstm>("lstm", {.units = 32, .keep = 0.5}, g.add<ig::Embedding>("embed", {}, x, E));
    auto l = g.add<ig::CrossEntropy>("loss", {}, g.add<ig::Softmax>("class", {.vocabulary = 2}, h), y);
    ig::Adam<float> adam(g.parameters(), {.rate = 0.005, .divisor = ig::Divisor::tokens});
    const auto forward = [&](ig::Index batch) {  // a sentence in each column
        std::vector<ig::Token> words(T * B, 0), classes(T * B, ig::not_predicted);
        for (ig::Index b = 0; b < B; ++b) {
            const auto& [list, question] = sentences[std::size_t(batch * B + b)];
            for (std::size_t t = 0; t < list.size(); ++t) words[t * B + std::size_t(b)] = list[t];
            classes[(list.size() - 1) * B + std::size_t(b)] = question;
        }
        g.reset();
        g.forward(l, {x, {words.data(), T, B}}, {y, {classes.data(), T, B}});
    };
    for (int epoch = 0; epoch < 3; ++epoch)
        for (ig::Index batch = held_out; batch < batches; ++batch) {
            forward(batch);
            g.backward(l);
            adam.step();
        }

    g.training(false);
    ig::Index correct = held_out * B;
    for (ig::Index batch = 0; batch < held_out; ++batch) {
        forward(batch);
        for (const double nats : g.result(l).by_token())
            correct -= nats >= std::log(2.);  // p ≤ 1/2; 0: no class
    }
    std::printf("%.1f %% of %td sentences\n", 100. * double(correct) / double(held_out * B), held_out * B);
    return 10 * correct > 7 * held_out * B ? 0 : 1;
}

// 80.8 % of 250 sentences
