// A server: four threads answer requests with one model. They share its weights; each has its own states.
#include <atomic>
#include <cstdio>
#include <isogloss/isogloss.hpp>
#include <isogloss/text.hpp>
#include <thread>

namespace ig = isogloss;

// Builds both the graph that is trained and the graphs that answer.
struct Model {
    ig::Graph<float> g;
    ig::Tokens x;
    ig::Logits<float> o;

    Model(ig::Index V, ig::GraphOptions options, const auto&... weights) : g(options, weights...) {
        x = g.tokens("x", V);
        auto E = g.weight("E", V, 64, ig::uniform(0.1));
        auto h = g.add<ig::Lstm>("lstm", {.units = 64}, g.add<ig::Embedding>("embed", {}, x, E));
        o = g.add<ig::TiedSoftmax>("softmax", {.bias = true}, h, E);
    }
    // Continues a text by 20 characters, each the most probable one.
    std::string answer(const ig::text::Vocabulary& vocabulary, const std::string& request) {
        std::vector<ig::Token> text;
        vocabulary.encode_prefix(request, text);
        g.reset();
        g.forward(o, {x, text});
        for (int i = 0; i < 20; ++i) {
            text.push_back(ig::top_k(g, o, 1, 0)[0].word);
            g.forward(o, {x, std::span<const ig::Token>(&text.back(), 1)});
        }
        return vocabulary.decode(text);
    }
};

int main() {
    const std::string path = ISOGLOSS_EXAMPLES_DATA "/tinyshakespeare.txt";
    const auto vocabulary = ig::text::Vocabulary::from_file(path, {.level = ig::text::Level::character});
    const auto text = ig::text::Corpus::read(path, vocabulary);

    Model model(vocabulary.size(), {.time = 35, .batch = 32});
    auto y = model.g.tokens("y", vocabulary.size());
    auto l = model.g.add<ig::CrossEntropy>("loss", {}, model.o, y);
    ig::Adam<float> adam(model.g.parameters(), {.rate = 0.01});
    for (const auto& batch : text.part(0, 400000, vocabulary).batches(model.g.capacity())) {
        model.g.forward(l, {model.x, batch.input}, {y, batch.target});
        model.g.backward(l);
        adam.step();
    }

    const std::vector<std::string> requests = {"The", "What", "First", "All:", "Speak", "we", "th", "ROM"};
    std::vector<std::string> answers(requests.size());
    std::atomic<std::size_t> next = 0;
    const auto serve = [&, weights = model.g.shared_weights()] {
        Model own(vocabulary.size(), {.time = 8}, weights);  // for requests of up to 8 characters
        for (std::size_t r; (r = next++) < requests.size();) answers[r] = own.answer(vocabulary, requests[r]);
    };
    { std::jthread a(serve), b(serve), c(serve), d(serve); }  // joined at the end of the block

    model.g.training(false);
    int differ = 0;
    for (std::size_t r = 0; r < answers.size(); ++r) {
        std::printf("%s\n", answers[r].c_str());
        differ += answers[r] != model.answer(vocabulary, requests[r]);
    }
    return differ;
}
