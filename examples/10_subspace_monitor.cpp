// How far apart the word vectors and the classifier of an untied model are while it is trained: the augmented
// loss draws the column space of the softmax matrix towards that of the embedding table, cross-entropy does not.
#include <cstdio>
#include <isogloss/isogloss.hpp>
#include <isogloss/metric/principal_angles.hpp>

namespace ig = isogloss;

void train(const ig::Corpus& corpus, const char* name, double gamma) {
    const ig::Index V = corpus.vocabulary_size();
    ig::Graph<float> g({.time = 35, .batch = 20});
    auto x = g.tokens("x", V), y = g.tokens("y", V);
    auto E = g.weight("E", V, 50, ig::uniform(0.1));
    auto h = g.add<ig::Lstm>("lstm", {.units = 50}, g.add<ig::Embedding>("embed", {}, x, E));
    auto o = g.add<ig::Softmax>("softmax", {.vocabulary = V}, h);  // a matrix of its own: softmax.W [V, 50]
    auto l = g.add<ig::AugmentedLoss>("loss", {.gamma = gamma, .temperature = 5}, o, y, E);
    ig::Adam adam(g.parameters(), {.rate = 0.005, .clip = 5, .divisor = ig::Divisor::tokens});

    ig::SubspaceMonitor<float> monitor(g.parameter("E"), g.parameter("softmax.W"), {.every = 50});
    for (auto batch : corpus.batches(g.capacity())) {
        g.forward(l, {x, batch.input}, {y, batch.target});
        g.backward(l);
        adam.step();
        monitor.step();
        if (batch.index + 1 == 200) break;
    }
    std::printf("%-14s", name);
    for (const auto& reading : monitor.readings()) std::printf("  %.3f", reading.distance);
    std::printf("   smallest angle %.2f, largest %.2f\n", monitor.readings().back().angles.front(),
                monitor.readings().back().angles.back());
}

int main() {
    const std::string path = ISOGLOSS_EXAMPLES_DATA "/tinyshakespeare.txt";
    const auto vocabulary = ig::Vocabulary::from_file(path, {.max_size = 1000});
    const auto corpus = ig::Corpus::read(path, vocabulary);
    std::printf("distance at step    0     50    100    150    200\n");
    train(corpus, "cross-entropy", 0);
    train(corpus, "augmented loss", 1);
}
