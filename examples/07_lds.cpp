// From co-occurrences to vectors: a linear dynamical system of the text, by subspace identification and EM.
#include <cstdio>
#include <isogloss/geometry/neighbours.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/text/corpus.hpp>
#include <span>

namespace ig = isogloss;

int main() {
    const std::string path = ISOGLOSS_EXAMPLES_DATA "/tinyshakespeare.txt";
    const auto vocabulary = ig::text::Vocabulary::from_file(path, {.max_size = 1500});
    const auto corpus = ig::text::Corpus::read(path, vocabulary);

    ig::counts::LagCounts counts(vocabulary.size(), {.lags = 7});  // the text is read once, here
    counts.add(corpus.tokens());
    const ig::lds::LagMoments<float> moments(counts, {.pseudo_counts = 20});
    auto system = ig::lds::subspace_identification(moments, {.states = 40, .lags = 4}).system;

    ig::lds::Statistics<float> averages;
    for (int i = 0; i <= 6; ++i) {  // EM: x_t = A x_{t-1} + η, y_t = C x_t + ε
        if (i > 0) ig::lds::maximise(std::move(averages), system);
        averages = ig::lds::asos_statistics(system, ig::lds::steady_state(system), moments, 7);
        std::printf("EM %d: %+.2f nats per token above a model without dynamics\n", i,
                    averages.log_likelihood - ig::lds::static_log_likelihood(vocabulary.size()));
    }

    const auto types = ig::lds::type_embedding(system, averages.xx);  // [V, 40], rows of norm 1
    for (const char* word : {"king", "thou", "upon"}) {
        std::printf("%-5s", word);
        for (const auto& n :
             ig::nearest(std::span(types.data(), types.size()), vocabulary.size(), 40, vocabulary[word], 6))
            std::printf(" %s", vocabulary.word(static_cast<ig::Token>(n.row)).c_str());
        std::printf("\n");
    }

    // The same word in two contexts: vectors of tokens, which depend on the words around them.
    const ig::lds::TokenEmbedding<float> embed(system, ig::lds::steady_state(system), averages,
                                               ig::lds::TokenStates::smoother);
    const auto vector = [&](const char* line) {
        std::vector<ig::Token> tokens;
        vocabulary.encode(line, tokens);
        return embed(tokens);
    };
    const auto a = vector("I will not love the king"), b = vector("for the love of heaven");
    double cosine = 0;  // counted from 0, "love" is word 3 of the first line and word 2 of the second
    for (std::size_t i = 0; i < 40; ++i) cosine += double(a(3, i)) * double(b(2, i));
    std::printf("to love and the love of: cosine %.2f\n", cosine);
}

// EM 0: +0.20 nats per token above a model without dynamics
// EM 1: +1.44 nats per token above a model without dynamics
// EM 2: +1.87 nats per token above a model without dynamics
// EM 3: +2.26 nats per token above a model without dynamics
// EM 4: +2.63 nats per token above a model without dynamics
// EM 5: +2.97 nats per token above a model without dynamics
// EM 6: +3.27 nats per token above a model without dynamics
// king  ground house loss queen world gates
// thou  thou, thyself she Warwick Thou e'er
// upon  against on unto before with above
// to love and the love of: cosine 0.39
