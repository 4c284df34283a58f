// Training that stops, is saved, and resumes elsewhere with bit-identical results.
#include <cstdio>
#include <filesystem>
#include <isogloss/io.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/text.hpp>

namespace ig = isogloss;

struct Training {
    const ig::text::Corpus& corpus;
    ig::Graph<float> g{ig::GraphOptions{.time = 20, .batch = 10}};
    ig::Tokens x = g.tokens("x", corpus.vocabulary_size()), y = g.tokens("y", corpus.vocabulary_size());
    ig::Weight<float> E = g.weight("E", corpus.vocabulary_size(), 32, ig::uniform(0.1));
    ig::Seq<float> h =
        g.add<ig::Gru>("gru", {.units = 32, .keep = 0.8}, g.add<ig::Embedding>("embed", {}, x, E));
    ig::Loss<float> l = g.add<ig::CrossEntropy>("loss", {}, g.add<ig::TiedSoftmax>("softmax", {}, h, E), y);
    ig::Adam<float> adam{g.parameters(), {.rate = 0.003, .clip = 5}};
    std::uint64_t batch = 0;  // position in the corpus

    ig::io::Checkpoint checkpoint() {
        ig::io::Checkpoint c;
        return c.model(g).state("adam", adam).counter("batch", batch);
    }
    void run(std::uint64_t until) {
        for (auto b : corpus.batches(g.capacity(), {.start = static_cast<ig::Index>(batch)})) {
            if (batch == until) break;
            g.forward(l, {x, b.input}, {y, b.target});
            g.backward(l);
            adam.step();
            ++batch;
        }
    }
};

int main() {
    const std::string text = ISOGLOSS_EXAMPLES_DATA "/tinyshakespeare.txt";
    std::string folder = std::filesystem::temp_directory_path() / "isogloss-XXXXXX";
    if (!::mkdtemp(folder.data())) return 1;
    const std::string file = folder + "/model.safetensors";

    const auto vocabulary = ig::text::Vocabulary::from_file(text, {.level = ig::text::Level::character});
    const auto corpus = ig::text::Corpus::read(text, vocabulary);

    Training whole{corpus};
    whole.run(40);

    Training first{corpus};
    first.run(25);
    first.checkpoint().save(file);  // parameters, Adam's moments, seed and step, carried states, position

    Training second{corpus};
    // All of it, or an error that lists what does not fit.
    second.checkpoint().load(ig::io::Safetensors::open(file));
    second.run(40);
    std::filesystem::remove_all(folder);

    const auto a = whole.g.value(whole.E), b = second.g.value(second.E);
    const bool same = std::equal(a.begin(), a.end(), b.begin());
    std::printf("resumed at batch 25 of 40: the tables are %s\n", same ? "equal to the bit" : "different");
    return same ? 0 : 1;
}

// resumed at batch 25 of 40: the tables are equal to the bit
