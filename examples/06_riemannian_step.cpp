// A Riemannian step for cells and head in the metric of their units (RUOP), against Adam on the same batches.
#include <cmath>
#include <cstdio>
#include <isogloss/isogloss.hpp>
#include <isogloss/text.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>

namespace ig = isogloss;

// Trains a language model of characters and prints its bits per character, 100 batches at a time.
void train(const ig::text::Corpus& corpus, const char* name, bool riemannian) {
    const ig::Index V = corpus.vocabulary_size();
    ig::Graph<float> g({.time = 50, .batch = 32});
    auto x = g.tokens("x", V), y = g.tokens("y", V);
    auto E = g.weight("E", V, 32, ig::uniform(0.1));
    auto h = g.add<ig::Lstm>("lstm", {.units = 64}, g.add<ig::Embedding>("embed", {}, x, E));
    auto l = g.add<ig::CrossEntropy>("loss", {}, g.add<ig::Softmax>("out", {.vocabulary = V}, h), y);

    // w ← w - η (M + ε)⁻¹ G, with M = Σ Φ z zᵀ of each unit in its quasi-diagonal form. An embedding table
    // has no units, so another update trains it.
    ig::Riemannian cells(g, "lstm.*", {.modulus = ig::UnitModulus::ruop, .rate = 0.003, .clip = 5});
    ig::Riemannian head(g, "out.*", {.rate = 0.03, .clip = 5});
    ig::Adam table(g.parameters("E"), {.rate = 0.01, .divisor = ig::Divisor::tokens});
    ig::Adam all(g.parameters(), {.rate = 0.02, .clip = 5, .divisor = ig::Divisor::tokens});

    std::printf("%-5s", name);
    ig::Perplexity seen;
    for (auto batch : corpus.batches(g.capacity())) {
        const double nats = g.forward(l, {x, batch.input}, {y, batch.target});
        seen.add(nats, g.result(l).predicted());
        g.backward(l);
        if (riemannian) {
            if (cells.wants_modulus()) g.backward<ig::Modulus>(l);  // with UnitModulus::rbpm
            cells.step();
            head.step();
            table.step();
        } else {
            all.step();
        }
        if (batch.index % 100 != 99) continue;
        std::printf("  %.2f", seen.bits_per_token());
        seen = {};
        if (batch.index + 1 == 400) break;
    }
    std::printf("  bits per character\n");
}

int main() {
    const std::string path = ISOGLOSS_EXAMPLES_DATA "/tinyshakespeare.txt";
    const auto vocabulary = ig::text::Vocabulary::from_file(path, {.level = ig::text::Level::character});
    const auto corpus = ig::text::Corpus::read(path, vocabulary);
    train(corpus, "RUOP", true);
    train(corpus, "Adam", false);
}

// RUOP   3.45  2.85  2.66  2.59  bits per character
// Adam   3.81  2.99  2.77  2.68  bits per character        (the best of the rates 0.005, 0.01, 0.02 and 0.04)
