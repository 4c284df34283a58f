// One model, trained by several ranks that share the columns of every batch. Here the ranks are threads; with
// processes, on one machine or many, an isogloss::mpi::Communicator replaces the Member, under mpirun.
#include <cstdio>
#include <isogloss/distributed/data_parallel.hpp>
#include <isogloss/distributed/thread_group.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/text/corpus.hpp>
#include <vector>

namespace ig = isogloss;

// Trains for an epoch and returns the perplexity after it, the same number on every rank.
double train(auto& ranks, const ig::text::Corpus& text, ig::Index V) {
    const ig::distributed::DataParallelOptions cut{.columns = 32, .shards = 4};
    ig::Graph<float> g({.time = 35, .batch = ig::distributed::widest_shard(cut)});
    auto x = g.tokens("x", V), y = g.tokens("y", V);
    auto E = g.weight("E", V, 64, ig::uniform(0.1));
    auto e = g.add<ig::Embedding>("embed", {.keep = 0.9}, x, E);
    auto h = g.add<ig::Lstm>("lstm", {.units = 64, .keep = 0.9}, e);
    auto l = g.add<ig::CrossEntropy>("loss", {}, g.add<ig::TiedSoftmax>("softmax", {.bias = true}, h, E), y);
    ig::distributed::DataParallel parallel(g, g.parameters(), ranks, cut);
    ig::Adam<float> adam(g.parameters(), {.rate = 0.005});
    for (const auto& batch : text.batches({35, cut.columns})) {
        parallel.gradients(batch, [&](const ig::text::Batch& part) {
            g.forward(l, {x, part.input}, {y, part.target});
            g.backward(l);
        });
        adam.step();
    }
    return evaluate(parallel, l, x, y, text.batches({35, cut.columns})).value();
}

int main() {
    const std::string path = std::string(ISOGLOSS_EXAMPLES_DATA) + "/tinyshakespeare.txt";
    const ig::text::VocabularyOptions options{.level = ig::text::Level::character};
    const auto vocabulary = ig::text::Vocabulary::from_file(path, options);
    const auto text = ig::text::Corpus::read(path, vocabulary).part(0, 100000, vocabulary);
    double perplexity[3] = {};
    for (const ig::Index n : {1, 2})
        ig::distributed::ThreadGroup::run(n, [&](auto& ranks) {
            const double found = train(ranks, text, vocabulary.size());
            if (ranks.rank() == 0) perplexity[n] = found;
        });
    std::printf("perplexity of a character after an epoch: %.2f by one rank, %.2f by two%s\n", perplexity[1],
                perplexity[2], perplexity[1] == perplexity[2] ? ", to the last bit" : "");
    return perplexity[1] == perplexity[2] ? 0 : 1;
}
