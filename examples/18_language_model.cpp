// A complete language model in one file: it trains, anneals its rate, keeps the best weights, resumes to the bit
// where it was stopped, and ends with the perplexity on a test text and a sample.
//
//     18_language_model                             seconds, on the bundled text
//     18_language_model fast TRAIN VALID TEST       the preset fast of programs/language_model, on three files
//
// It writes PRESET.safetensors, the best weights, and PRESET.train.safetensors, with which the same call goes on.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <isogloss/io.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/text.hpp>
#include <limits>
#include <string>
#include <vector>

namespace ig = isogloss;
using ig::Index;

/// Probabilities of keeping a word, a vector's entry, a state, what goes between layers, what the head reads.
struct Keep {
    double words = 1, input = 1, state = 1, between = 1, output = 1;
};
/// What distinguishes one training from another.
struct Preset {
    std::string name;
    std::vector<Index> units;  // of the LSTM layers, from the bottom up; word vectors are as wide as the last
    Keep keep = {};
    ig::ActivationPenalty<float>::Options penalty = {};  // on what the head reads
    double init = 0.1, weight_decay = 0;                 // weights start uniform within ± init
    double rate = 1;  // rises for a twentieth of the training, then falls to 0 along half a cosine
    Index epochs = 1, batch = 20, min_count = 1;  // types seen less often in training become <unk>
};

const std::vector<Preset> presets = {
    {.name = "tiny", .units = {32}, .keep = {.output = 0.9}, .epochs = 2, .min_count = 5},
    // Those of programs/language_model; docs/lab/language_model_results.md has what they cost and reach.
    {.name = "fast",
     .units = {300, 300},
     .keep = {.input = 0.85, .state = 0.75, .between = 0.9, .output = 0.75},
     .penalty = {.size = 2, .change = 1},
     .weight_decay = 2e-4,
     .epochs = 13,
     .batch = 10},
    {.name = "wide",
     .units = {1152, 400},
     .keep = {.words = 0.9, .input = 0.6, .state = 0.65, .between = 0.75, .output = 0.6},
     .penalty = {.size = 2, .change = 1},
     .init = 0.05,
     .weight_decay = 1.5e-4,
     .rate = 1.5,
     .epochs = 70},
};

struct Model {
    ig::Graph<float> g;
    ig::Tokens x, y;       // [T, B] tokens, and those that follow
    ig::Logits<float> o;   // of the next token
    ig::Loss<float> nll;   // the cross-entropy
    ig::Loss<float> loss;  // the same and the penalties: what is minimised

    Model(const Preset& p, Index V)
        : g({.time = 35,
             .batch = p.batch,
             .precision = ig::fastest_precision<float>(),
             .epsilon = 1. / 256}) {
        const auto init = ig::uniform(p.init);
        x = g.tokens("x", V);
        y = g.tokens("y", V);
        auto E = g.weight("E", V, p.units.back(), init);
        auto h = g.add<ig::Embedding>("embed", {.keep = p.keep.input, .keep_words = p.keep.words}, x, E);
        for (std::size_t l = 0; l < p.units.size(); ++l) {
            const auto number = std::to_string(l + 1);
            const double keep = l + 1 < p.units.size() ? p.keep.between : p.keep.output;
            ig::Lstm<float>::Options layer{.units = p.units[l], .keep = p.keep.state, .init = init};
            layer.scheme = ig::DropoutScheme::recurrent;
            h = g.add<ig::Lstm>("lstm" + number, layer, h);
            h = g.add<ig::Dropout>("dropout" + number, {.keep = keep, .variational = true}, h);
        }
        o = g.add<ig::TiedSoftmax>("softmax", {.bias = true, .init = init}, h, E);
        nll = g.add<ig::CrossEntropy>("nll", {}, o, y);
        auto penalty = g.add<ig::ActivationPenalty>("activations", p.penalty, h);
        loss = g.add<ig::TotalLoss>("total", {}, nll, penalty);
    }

    /// Every token of a text is predicted once, an <eos> fed before the first.
    double perplexity(const ig::text::Corpus& text, const ig::text::Vocabulary& vocabulary, Index columns) {
        const ig::text::BatchOptions cut{.tail = ig::text::Tail::pad, .predict_first = vocabulary.eos()};
        return ig::evaluate(g, nll, x, y, text.batches({g.capacity().time, columns}, cut)).value();
    }

    std::string sample(const ig::text::Vocabulary& vocabulary, Index words) {
        const ig::Evaluation evaluation(g);
        const ig::Random random(1, ig::stream_of("sample"));
        std::vector<float> p(static_cast<std::size_t>(vocabulary.size()));
        std::vector<ig::Token> said;
        ig::Token word = vocabulary.eos();
        for (Index k = 0; k < words; ++k) {
            g.forward(o, {x, ig::TokenBlock{&word, 1, 1}});
            g.head(o).probabilities(0, {p.data(), 1, vocabulary.size()});
            word = ig::sample(p, random.uniform(k));
            said.push_back(word);
        }
        return vocabulary.decode(said);
    }
};

int main(int argc, char** argv) try {
    const std::string name = argc > 1 ? argv[1] : "tiny";
    const auto preset = std::ranges::find(presets, name, &Preset::name);
    if (preset == presets.end() || (argc != 1 && argc != 5))
        throw ig::UsageError("usage: 18_language_model [tiny|fast|wide TRAIN VALID TEST]");
    const std::string first = argc > 1 ? argv[2] : ISOGLOSS_EXAMPLES_DATA "/tinyshakespeare.txt";
    const auto vocabulary = ig::text::Vocabulary::from_file(first, {.min_count = preset->min_count});
    auto train = ig::text::Corpus::read(first, vocabulary), valid = train, test = train;
    if (argc > 1) {
        valid = ig::text::Corpus::read(argv[3], vocabulary);
        test = ig::text::Corpus::read(argv[4], vocabulary);
    } else {  // parts of the one text
        const Index n = train.size() / 10;
        valid = train.part(6 * n, 7 * n, vocabulary);
        test = train.part(7 * n, 8 * n, vocabulary);
        train = train.part(0, 6 * n, vocabulary);
    }

    Model model(*preset, vocabulary.size());
    auto& g = model.g;
    ig::Sgd sgd(g.parameters(), {.clip = 5, .weight_decay = preset->weight_decay});
    const ig::OneCycle rate{.rate = preset->rate, .warm_up = 0.05};
    std::printf("%td types, %td tokens to train on, %td parameters\n", vocabulary.size(), train.size(),
                g.parameters().elements());

    // All that a training consists of, and what is kept of its best epoch.
    std::uint64_t epoch = 0, step = 0, text = train.checksum();
    double nats = 0, tokens = 0, best = std::numeric_limits<double>::infinity();
    std::string words = vocabulary.to_text();
    ig::io::Checkpoint whole, weights;
    whole.model(g).state("sgd", sgd).counter("epoch", epoch).counter("step", step).counter("text", text);
    whole.number("nats", nats).number("tokens", tokens).number("best", best);
    weights.model(g).text("vocabulary", words);
    const std::string best_file = name + ".safetensors", train_file = name + ".train.safetensors";
    if (std::filesystem::exists(train_file)) whole.load(ig::io::Safetensors::open(train_file));
    if (text != train.checksum())
        throw ig::DataError(train_file + " is of another training text; remove it to begin anew");

    while (epoch < std::uint64_t(preset->epochs)) {
        auto batches = train.batches(g.capacity(), {.start = Index(step)});
        for (const auto& batch : batches) {
            const double share = (double(batch.index) + 0.5) / double(batches.count());
            sgd.rate(rate((double(epoch) + share) / double(preset->epochs)));
            if (batch.first) g.reset();
            g.forward(model.loss, {model.x, batch.input}, {model.y, batch.target});
            g.backward(model.loss);
            sgd.step();
            nats += g.result(model.nll).cross_entropy();
            tokens += double(g.result(model.nll).predicted());
            if (++step % 500 == 0) whole.save(train_file);
        }
        const double now = model.perplexity(valid, vocabulary, preset->batch);
        ++epoch;
        std::printf("epoch %2td: perplexity %.2f in training, %.2f in validation\n", Index(epoch),
                    std::exp(nats / tokens), now);
        if (now < best) {
            best = now;
            weights.save(best_file);
        }
        step = 0;
        nats = tokens = 0;
        whole.save(train_file);
    }

    weights.load(ig::io::Safetensors::open(best_file), ig::io::Restore::parameters);
    std::printf("test perplexity %.2f\n", model.perplexity(test, vocabulary, 1));
    std::printf("%s\n", model.sample(vocabulary, 60).c_str());
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
