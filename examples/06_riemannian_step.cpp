// A language model of a gated leaky network on a sparse graph (GLNN) under a tied head: steps in the metric of its units
// and of its table (RUOP), against Adam on the same batches.
#include <cstdio>
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/text.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>

namespace ig = isogloss;

// Trains a language model of characters and prints its bits per character, 100 batches at a time.
void train(const ig::text::Corpus& corpus, const char* name, bool riemannian) {
    const ig::Index V = corpus.vocabulary_size();
    ig::Graph<float> g({.time = 50, .batch = 32});
    auto x = g.tokens("x", V), y = g.tokens("y", V);
    auto E = g.weight("E", V, 64, ig::uniform(0.1));
    auto e = g.add<ig::Embedding>("embed", {}, x, E);
    // 3 edges a unit, with weights that are a function of e; time scales of 1 to 10 steps at first, V in [-3, 3].
    auto h = g.add<ig::Glnn>("net", {.units = 64, .edges = 3, .longest = 10, .bound = 3}, e);
    auto l = g.add<ig::CrossEntropy>("loss", {}, g.add<ig::TiedSoftmax>("out", {.bias = true}, h, E), y);

    // w ← w - η (M + ε)⁻¹ G, with M = Σ Φ z zᵀ of each unit in its quasi-diagonal form. That of the table is the sum of
    // its two roles: weights from one-hot words to e, and of the softmax.
    ig::Riemannian net(g, "net.*", {.modulus = ig::UnitModulus::ruop, .rate = 0.002, .clip = 5});
    ig::Riemannian table(g, "E,out.*", {.modulus = ig::UnitModulus::ruop, .rate = 0.02, .clip = 5});
    ig::Adam all(g.parameters(), {.rate = 0.01, .clip = 5, .divisor = ig::Divisor::tokens});

    std::printf("%-5s", name);
    ig::Perplexity seen;
    for (auto batch : corpus.batches(g.capacity())) {
        const double nats = g.forward(l, {x, batch.input}, {y, batch.target});
        seen.add(nats, g.result(l).predicted());
        g.backward(l);
        if (riemannian) {
            if (net.wants_modulus()) g.backward<ig::Modulus>(l);  // with UnitModulus::rbpm
            net.step();
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

// RUOP   3.37  2.95  2.84  2.80  bits per character
// Adam   3.70  3.05  2.93  2.87  bits per character        (the better of the rates 0.01 and 0.02)
