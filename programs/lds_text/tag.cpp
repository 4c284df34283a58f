/// @file tag.cpp  Tagging: from one vector per word, by a network with one hidden layer, or from words,
/// affixes and shapes, by a chain model.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <iostream>
#include <isogloss/isogloss.hpp>
#include <isogloss/lds.hpp>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "../shared/json.hpp"
#include "../shared/tagged_text.hpp"
#include "../shared/threads.hpp"
#include "chain_model.hpp"
#include "common.hpp"
#include "lexical_features.hpp"
#include "tag_scores.hpp"
#include "token_vectors.hpp"

namespace lt {

namespace {

/// h = tanh(x W + b)
template <class T> struct Hidden {
    struct Options {
        ig::Index units = 0;
    };
    Options options;
    ig::Units<T> z;
    ig::Seq<T> h;

    ig::Seq<T> setup(ig::Setup<T>& s, ig::Seq<T> x) {
        h = s.sequence("h", options.units);
        z = s.units("z", options.units).from("W", x).bias("b");
        return h;
    }
    void forward(ig::Forward<T>& p) {
        p.affine(z);
        noalias(p.at(h)) = tanh(p.at(z));
    }
    template <class Quantity> void backward(ig::Backward<T, Quantity>& p) {
        noalias(p.adjoint(z)) = p.chain(1 - square(p.at(h))) * p.adjoint(h);
        p.affine_backward(z);
    }
};

/// A hidden layer and a softmax: a tag from the vector of a word.
struct Network {
    Network(ig::Index width, ig::Index tags, const TagCommand& o)
        : g({.time = 1, .batch = 1024, .seed = o.seed}),
          x(g.input("x", width)),
          y(g.tokens("y", tags)),
          logits(g.add<ig::Softmax>("out", {.vocabulary = tags},
                                    g.add<Hidden>("hidden", {.units = o.units}, x))),
          loss(g.add<ig::CrossEntropy>("loss", {}, logits, y)) {}

    std::vector<ig::Token> predict(const Features& f, ig::Index tags) {
        g.training(false);
        std::vector<ig::Token> out;
        ig::Tensor<float, 2> p({1024, std::size_t(tags)});
        for (ig::Index i = 0; i < lds::rows(f); i += 1024) {
            const ig::Index n = std::min<ig::Index>(1024, lds::rows(f) - i);
            g.forward(logits, {x, f.data() + i * lds::cols(f), 1, n});
            g.head(logits).probabilities(0, {p.data(), n, tags});
            for (ig::Index r = 0; r < n; ++r)
                out.push_back(
                    static_cast<ig::Token>(std::max_element(p.data() + r * tags, p.data() + (r + 1) * tags) -
                                           (p.data() + r * tags)));
        }
        g.training(true);
        return out;
    }

    /// Whether all weights are finite numbers.
    bool finite() {
        return std::ranges::all_of(g.parameters(), [](const auto* p) {
            return ig::kernel::first_non_finite(p->size(), p->value) == p->size();
        });
    }

    ig::Graph<float> g;
    ig::Seq<float> x;
    ig::Tokens y;
    ig::Logits<float> logits;
    ig::Loss<float> loss;
};

/// Three tagged texts with their vectors.
struct Task {
    tagged::Tags tags;
    tagged::Text train, dev, test;
    Features x, x_dev, x_test;  // vectors of their words
    bool of_entities = false;
    const char* measure = "";
};

/// The most frequent tag of words without a letter or digit, and of those seen often; the others are learnt.
class Majority {
public:
    /// `often`: how often a word must be seen; 0: every word is learnt.
    Majority(const tagged::Text& text, ig::Index often) {
        if (often == 0) return;
        std::map<std::string, std::map<ig::Token, ig::Index>> seen;
        for (std::size_t i = 0; i < text.words.size(); ++i) ++seen[text.words[i]][text.tags[i]];
        for (const auto& [word, tags] : seen) {
            ig::Index count = 0;
            for (const auto& [tag, n] : tags) count += n;
            const bool punctuation =
                std::ranges::all_of(word, [](unsigned char c) { return std::ispunct(c); });
            if (punctuation || count >= often)
                tags_[word] =
                    std::ranges::max_element(tags, {}, [](const auto& tag) { return tag.second; })->first;
        }
    }
    /// The tag of a word, or -1.
    ig::Token operator()(const std::string& word) const {
        const auto at = tags_.find(word);
        return at == tags_.end() ? -1 : at->second;
    }
    /// Sets the tags of these words.
    void set(const tagged::Text& text, std::vector<ig::Token>& tags) const {
        for (std::size_t i = 0; i < tags.size() && !tags_.empty(); ++i)
            if (const auto tag = (*this)(text.words[i]); tag >= 0) tags[i] = tag;
    }

private:
    std::map<std::string, ig::Token> tags_;
};

/// The tags of the test text in the epoch that is best on dev.
class Best {
public:
    Best(const Task& task, std::ostream& shown) : task_(task), shown_(shown) {}
    /// Takes the tags of dev after an epoch; calls test() for those of test if dev is the best so far.
    template <class F>
    void epoch(ig::Index number, double nats, const std::vector<ig::Token>& dev, F&& test) {
        const double now = score(task_.dev, dev, task_.tags, task_.of_entities);
        if (now > best_) best_ = now, tags_ = test();
        say(shown_, "epoch %td: %.4f nats, %s on dev %.2f %%\n", number,
            nats / static_cast<double>(task_.train.words.size()), task_.measure, 100 * now);
    }
    const std::vector<ig::Token>& tags() const { return tags_; }
    double on_dev() const { return best_; }

private:
    const Task& task_;
    std::ostream& shown_;
    double best_ = -1;
    std::vector<ig::Token> tags_;
};

/// 0 … n - 1 in the random order of an epoch.
std::vector<std::size_t> shuffled(std::size_t n, std::uint64_t seed, ig::Index epoch) {
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    for (ig::Index e = 0; e <= epoch; ++e) {
        const ig::Random random(seed, ig::stream_of("order"), static_cast<std::uint64_t>(e));
        for (std::size_t i = n - 1; i > 0; --i)
            std::swap(order[i], order[std::size_t(random.below(ig::Index(i), ig::Index(i + 1)))]);
    }
    return order;
}

/// The nats of an epoch of learn(). Throws NumericError if its perplexity or the weights after it are not finite,
/// as the other trainings of this program do.
template <class Model, class Learn> double epoch_of(Model& model, const char* name, double rate,
                                                    ig::Index number, std::size_t words, Learn&& learn) {
    double nats = std::numeric_limits<double>::quiet_NaN();
    try {
        nats = learn();
    } catch (const ig::NumericError&) {  // names no option
    }
    if (!std::isfinite(std::exp(nats / static_cast<double>(words))) || !model.finite())
        throw ig::NumericError("tag: ", name, " diverges in epoch ", number, " at rate ", rate,
                               "; use a smaller --rate");
    return nats;
}

/// Tags words independently from their vectors.
Best learn_network(const TagCommand& o, const Task& task, std::ostream& shown) {
    const Features& x = task.x;
    const auto count = std::ssize(task.tags.names);
    const Majority majority(task.train, o.majority);
    Network net(lds::cols(x), count, o);
    const double rate = o.rate.value_or(0.003);
    ig::Adam<float> adam(net.g.parameters(), {.rate = rate, .divisor = ig::Divisor::tokens});
    Features block = lds::zeros<float>(o.batch, lds::cols(x));
    std::vector<ig::Token> target(std::size_t(o.batch));
    const auto learn = [&](ig::Index epoch) {
        auto order = shuffled(task.train.words.size(), o.seed, epoch);
        std::erase_if(order, [&](std::size_t i) { return majority(task.train.words[i]) >= 0; });
        double nats = 0;
        for (std::size_t i = 0; i < order.size(); i += std::size_t(o.batch)) {
            const auto n = std::min(order.size() - i, std::size_t(o.batch));
            for (std::size_t r = 0; r < n; ++r) {
                std::copy_n(x.data() + ig::Index(order[i + r]) * lds::cols(x), lds::cols(x),
                            block.data() + ig::Index(r) * lds::cols(x));
                target[r] = task.train.tags[order[i + r]];
            }
            nats += net.g.forward(net.loss, {net.x, block.data(), 1, ig::Index(n)},
                                  {net.y, ig::TokenBlock{target.data(), 1, ig::Index(n)}});
            net.g.backward(net.loss);
            adam.step();
        }
        return nats;
    };
    Best best(task, shown);
    for (ig::Index epoch = 0; epoch < o.epochs; ++epoch) {
        const double nats = epoch_of(net, "the network", rate, epoch + 1, task.train.words.size(),
                                     [&] { return learn(epoch); });
        const auto predict = [&](const tagged::Text& text, const Features& of) {
            auto tags = net.predict(of, count);
            majority.set(text, tags);
            return tags;
        };
        best.epoch(epoch + 1, nats, predict(task.dev, task.x_dev),
                   [&] { return predict(task.test, task.x_test); });
    }
    return best;
}

/// Tags sentences as chains, from the words themselves and their vectors, if any.
Best learn_chain(const TagCommand& o, const Task& task, std::ostream& shown) {
    LexicalFeatures features(task.train, o.min_count);
    const auto all = [&](const tagged::Text& text, const Features& x) {
        return ChainText{
            features(text), {x.data(), x.data() + x.size()}, lds::cols(x), text.starts, text.tags};
    };
    const ChainText train = all(task.train, task.x), dev = all(task.dev, task.x_dev),
                    test = all(task.test, task.x_test);
    const auto count = std::ssize(task.tags.names);
    say(shown, "%td features of words, seen %td times or more\n", features.size(), o.min_count);
    const double rate = o.rate.value_or(0.1);
    ChainModel model({.tags = count, .features = features.size(), .width = lds::cols(task.x), .rate = rate});
    const auto predict = [&](const ChainText& text) {
        std::vector<ig::Token> found;
        for (std::size_t s = 0; s < text.sentences(); ++s) {
            const auto tags = model.best_tags(text, s);
            found.insert(found.end(), tags.begin(), tags.end());
        }
        return found;
    };
    Best best(task, shown);
    for (ig::Index epoch = 0; epoch < o.epochs; ++epoch) {
        const double nats = epoch_of(model, "the chain model", rate, epoch + 1, task.train.words.size(), [&] {
            double sum = 0;
            for (const std::size_t s : shuffled(train.sentences(), o.seed, epoch))
                sum -= model.learn(train, s);
            return sum;
        });
        best.epoch(epoch + 1, nats, predict(dev), [&] { return predict(test); });
    }
    return best;
}

}  // namespace

int tag(const TagCommand& o) {
    program::use_threads("tag", o.threads);
    ig::require("tag", "--epochs", o.epochs, 1);
    ig::require("tag", "--window", o.window, 0, 100);
    ig::require("tag", "--units", o.units, 1, 100000);
    ig::require("tag", "--min-count", o.min_count, 1);
    ig::require("tag", "--majority", o.majority, 0);
    files::Outputs()
        .read("--model", o.model)
        .read("--vectors", o.vectors)
        .read("--train", o.train)
        .read("--dev", o.dev)
        .read("--test", o.test)
        .read("--against", o.against)
        .write_unmarked("--predictions", o.predictions, o.overwrite)
        .check();
    const bool lexical = o.features == "lexical";
    if (!o.model.empty() && !o.vectors.empty()) throw ig::DataError("tag: give either --model or --vectors");
    if (o.model.empty() && o.vectors.empty() && !lexical)
        throw ig::DataError("tag: give either --model or --vectors, or --features lexical");
    Task task;
    task.train = tagged::read_tagged(o.train, o.format, task.tags);
    task.dev = tagged::read_tagged(o.dev, o.format, task.tags);
    task.test = tagged::read_tagged(o.test, o.format, task.tags);
    const auto of_other = read_tags(o, task.test);
    task.x = token_vectors(o, task.train);
    task.x_dev = token_vectors(o, task.dev);
    task.x_test = token_vectors(o, task.test);
    task.of_entities = o.format == "conll";
    task.measure = task.of_entities ? "F1" : "accuracy";
    std::ostream& shown = o.json ? std::cerr : std::cout;
    say(shown, "%zu words to learn from, %td numbers each, %zu tags\n", task.train.words.size(),
        lds::cols(task.x), task.tags.names.size());

    const Best best = lexical ? learn_chain(o, task, shown) : learn_network(o, task, shown);
    const double on_test = score(task.test, best.tags(), task.tags, task.of_entities);
    if (!o.predictions.empty()) {
        ig::file::write_atomically(o.predictions, [&](ig::file::OutputFile& out) {
            for (const auto t : best.tags()) out.write(task.tags.names[std::size_t(t)] + "\n");
        });
    }
    if (!o.json)
        say("best on dev %.2f %%, there on test: %s %.2f %%\n", 100 * best.on_dev(), task.measure,
            100 * on_test);
    std::optional<Comparison> beside;
    if (!o.against.empty()) beside = compare(o, task.test, best.tags(), of_other, task.tags);
    if (o.json) {
        program::Json all = {{"measure", task.measure}, {"dev", best.on_dev()}, {"test", on_test}};
        if (beside) all["against"] = as_json(o, *beside);
        std::cout << program::dump(all) << std::endl;
        return 0;
    }
    if (beside) print(o, *beside);
    return 0;
}

}  // namespace lt
