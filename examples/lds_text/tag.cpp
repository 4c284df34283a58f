/// @file tag.cpp  Tagging each word by itself from its vector: a network with one hidden layer.
#include <algorithm>
#include <cmath>
#include <isogloss/io/word_vectors.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>
#include <set>
#include <tuple>

#include "common.hpp"
#include "tagged_text.hpp"

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

std::string lower(std::string word) {
    for (char& c : word)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return word;
}

/// Vectors of all words of a text, one row each.
using Features = lds::TallMatrix<float>;

/// Words of the text in the vocabulary: as spelled, in lower case, or unknown.
ig::Token known(const ig::text::Vocabulary& v, const std::string& word) {
    if (const auto t = v.find(word)) return *t;
    if (const auto t = v.find(lower(word))) return *t;
    return v.unk();
}

Features of_model(const TagCommand& o, const TaggedText& text) {
    const auto it = lds::load_lds<float>(o.model);
    std::vector<std::vector<ig::Token>> sentences;
    const bool eos = it.vocabulary.has_eos();
    for (std::size_t s = 0; s + 1 < text.starts.size(); ++s) {
        auto& tokens = sentences.emplace_back();
        if (eos) tokens.push_back(it.vocabulary.eos());
        for (std::size_t i = text.starts[s]; i < text.starts[s + 1]; ++i)
            tokens.push_back(known(it.vocabulary, text.words[i]));
        if (eos) tokens.push_back(it.vocabulary.eos());
    }
    Features all;
    if (o.states == "types") {
        const auto types = lds::type_embedding(it.system, it.xx);
        ig::Index rows = 0;
        for (const auto& tokens : sentences) rows += std::ssize(tokens);
        all = lds::zeros<float>(rows, lds::cols(types));
        float* to = all.data();
        for (const auto& tokens : sentences)
            for (const auto t : tokens)
                to = std::copy_n(types.data() + t * lds::cols(types), lds::cols(types), to);
    } else {
        const bool filter = o.states == "filter";
        const std::vector<std::span<const ig::Token>> spans(sentences.begin(), sentences.end());
        all = lds::TokenEmbedding<float>(
            it.system, lds::steady_state(it.system), filter ? it.xx_filtered : it.xx,
            filter ? lds::TokenStates::filter : lds::TokenStates::smoother)(spans);
    }
    // without the line ends around each sentence
    const ig::Index n = lds::cols(all);
    Features out = lds::zeros<float>(std::ssize(text.words), n);
    float* to = out.data();
    const float* from = all.data();
    for (const auto& tokens : sentences) {
        const auto words = std::ssize(tokens) - (eos ? 2 : 0);
        to = std::copy_n(from + (eos ? n : 0), words * n, to);
        from += std::ssize(tokens) * n;
    }
    return out;
}

Features of_vectors(const TagCommand& o, const TaggedText& text) {
    const auto v = ig::io::read_word_vectors(o.vectors);
    Features out = lds::zeros<float>(std::ssize(text.words), v.dimension);
    for (std::size_t i = 0; i < text.words.size(); ++i) {
        auto at = v.words.find(text.words[i]);
        if (at < 0) at = v.words.find(lower(text.words[i]));
        if (at < 0) at = v.words.find("<unk>");
        if (at < 0) continue;
        const auto row = v.row(at);
        std::copy(row.begin(), row.end(), out.data() + static_cast<ig::Index>(i) * v.dimension);
    }
    lds::normalise_rows(out);
    return out;
}

/// Each row with those of the words around it in its sentence.
Features with_window(const Features& x, const TaggedText& text, ig::Index window) {
    const ig::Index n = lds::cols(x), width = n * (2 * window + 1);
    Features out = lds::zeros<float>(lds::rows(x), width);
    for (std::size_t s = 0; s + 1 < text.starts.size(); ++s) {
        const auto first = static_cast<ig::Index>(text.starts[s]),
                   end = static_cast<ig::Index>(text.starts[s + 1]);
        for (ig::Index i = first; i < end; ++i)
            for (ig::Index d = -window; d <= window; ++d)
                if (i + d >= first && i + d < end)
                    std::copy_n(x.data() + (i + d) * n, n, out.data() + i * width + (d + window) * n);
    }
    // entries of about unit size
    const float scale = std::sqrt(static_cast<float>(n));
    for (float& value : out) value *= scale;
    return out;
}

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
            g.probabilities(logits, 0, {p.data(), n, tags});
            for (ig::Index r = 0; r < n; ++r)
                out.push_back(
                    static_cast<ig::Token>(std::max_element(p.data() + r * tags, p.data() + (r + 1) * tags) -
                                           (p.data() + r * tags)));
        }
        g.training(true);
        return out;
    }

    ig::Graph<float> g;
    ig::Seq<float> x;
    ig::Tokens y;
    ig::Logits<float> logits;
    ig::Loss<float> loss;
};

/// Share of words with the right tag, or F1 of entities.
double score(const TaggedText& text, const std::vector<ig::Token>& found, const Tags& tags,
             bool of_entities) {
    if (!of_entities) {
        std::size_t right = 0;
        for (std::size_t i = 0; i < found.size(); ++i) right += found[i] == text.tags[i];
        return static_cast<double>(right) / static_cast<double>(found.size());
    }
    const auto a = entities(text, text.tags, tags), b = entities(text, found, tags);
    const std::set<Entity> gold(a.begin(), a.end());
    std::size_t right = 0;
    for (const auto& e : b) right += gold.count(e);
    return 2 * static_cast<double>(right) /
           static_cast<double>(std::max<std::size_t>(1, a.size() + b.size()));
}

/// How often F1 differs by at least as much as it does, when the answers of two taggers are swapped in random
/// sentences: a test of the null hypothesis that the two are alike.
double randomised(const TaggedText& text, const std::vector<ig::Token>& mine,
                  const std::vector<ig::Token>& theirs, const Tags& tags, std::uint64_t seed) {
    struct Sentence {
        double found[2], right[2], gold;
    };
    std::vector<Sentence> sentences(text.starts.size() - 1);
    const auto sentence_of = [&](const Entity& e) -> Sentence& {
        return sentences[std::size_t(std::upper_bound(text.starts.begin(), text.starts.end(), e.first) -
                                     text.starts.begin() - 1)];
    };
    const auto gold = entities(text, text.tags, tags);
    const std::set<Entity> known(gold.begin(), gold.end());
    for (const Entity& e : gold) sentence_of(e).gold += 1;
    for (const int side : {0, 1})
        for (const Entity& e : entities(text, side == 0 ? mine : theirs, tags)) {
            sentence_of(e).found[side] += 1;
            sentence_of(e).right[side] += static_cast<double>(known.count(e));
        }
    constexpr ig::Index rounds = 10000;
    const ig::Random random(seed, ig::stream_of("randomisation"));
    const auto difference = [&](ig::Index round) {  // round 0: as they are
        double found[2] = {0, 0}, right[2] = {0, 0}, all = 0;
        for (std::size_t i = 0; i < sentences.size(); ++i) {
            const auto draw = round * std::ssize(sentences) + static_cast<ig::Index>(i);
            const int swapped = round > 0 && random.uniform(draw) < 0.5 ? 1 : 0;
            for (const int side : {0, 1}) {
                found[side] += sentences[i].found[side ^ swapped];
                right[side] += sentences[i].right[side ^ swapped];
            }
            all += sentences[i].gold;
        }
        return std::abs(2 * right[0] / std::max(1.0, found[0] + all) -
                        2 * right[1] / std::max(1.0, found[1] + all));
    };
    const double observed = difference(0);
    ig::Index as_large = 1;
    for (ig::Index round = 1; round <= rounds; ++round) as_large += difference(round) >= observed - 1e-12;
    return static_cast<double>(as_large) / static_cast<double>(rounds + 1);
}

/// McNemar's test on the words where exactly one of two taggers is right; for entities a test of F1 too.
void compare(const TagCommand& o, const TaggedText& text, const std::vector<ig::Token>& found, Tags& tags) {
    ig::file::LineReader lines(o.against);
    std::vector<ig::Token> other;
    for (std::string_view line; lines.next(line);) other.push_back(tags.number(std::string(line)));
    if (other.size() != found.size())
        throw ig::DataError(ig::message(o.against, ": holds ", other.size(), " tags, but the test text has ",
                                        found.size(), " words"));
    std::size_t mine = 0, theirs = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        mine += found[i] == text.tags[i] && other[i] != text.tags[i];
        theirs += found[i] != text.tags[i] && other[i] == text.tags[i];
    }
    const double n = static_cast<double>(mine + theirs), d = std::abs(double(mine) - double(theirs));
    const double chi = n > 0 ? std::pow(std::max(0.0, d - 1), 2) / n : 0;
    say("against %s: right alone on %zu words, wrong alone on %zu; McNemar chi² %.2f, p = %.2g\n",
        o.against.c_str(), mine, theirs, chi, std::erfc(std::sqrt(chi / 2)));
    if (o.format == "conll")
        say("F1 there %.2f %%; approximate randomisation over sentences, p = %.2g\n",
            100 * score(text, other, tags, true), randomised(text, found, other, tags, o.seed));
}

}  // namespace

int tag(const TagCommand& o) {
    ig::threads(o.threads);
    ig::require("tag", "--epochs", o.epochs, 1);
    ig::require("tag", "--window", o.window, 0, 100);
    ig::require("tag", "--units", o.units, 1, 100000);
    files::Outputs()
        .read("--model", o.model)
        .read("--vectors", o.vectors)
        .read("--train", o.train)
        .read("--dev", o.dev)
        .read("--test", o.test)
        .read("--against", o.against)
        .write_unmarked("--predictions", o.predictions, o.overwrite)
        .check();
    if (o.model.empty() == o.vectors.empty()) throw ig::DataError("tag: give either --model or --vectors");
    Tags tags;
    const TaggedText train = read_tagged(o.train, o.format, tags), dev = read_tagged(o.dev, o.format, tags),
                     test = read_tagged(o.test, o.format, tags);
    const auto features = [&](const TaggedText& text) {
        return with_window(o.model.empty() ? of_vectors(o, text) : of_model(o, text), text, o.window);
    };
    const Features x = features(train), x_dev = features(dev), x_test = features(test);
    const auto count = std::ssize(tags.names);
    const bool of_entities = o.format == "conll";
    const char* measure = of_entities ? "F1" : "accuracy";
    say("%zu words to learn from, %td numbers each, %td tags\n", train.words.size(), lds::cols(x), count);

    Network net(lds::cols(x), count, o);
    ig::Adam<float> adam(net.g.parameters(), {.rate = o.rate, .divisor = ig::Divisor::tokens});
    std::vector<std::size_t> order(train.words.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    Features block = lds::zeros<float>(o.batch, lds::cols(x));
    std::vector<ig::Token> target(std::size_t(o.batch)), best_tags;
    double best = -1;
    for (ig::Index epoch = 0; epoch < o.epochs; ++epoch) {
        const ig::Random random(o.seed, ig::stream_of("order"), static_cast<std::uint64_t>(epoch));
        for (std::size_t i = order.size() - 1; i > 0; --i)
            std::swap(order[i], order[std::size_t(random.below(ig::Index(i), ig::Index(i + 1)))]);
        double nats = 0;
        for (std::size_t i = 0; i < order.size(); i += std::size_t(o.batch)) {
            const auto n = std::min(order.size() - i, std::size_t(o.batch));
            for (std::size_t r = 0; r < n; ++r) {
                std::copy_n(x.data() + ig::Index(order[i + r]) * lds::cols(x), lds::cols(x),
                            block.data() + ig::Index(r) * lds::cols(x));
                target[r] = train.tags[order[i + r]];
            }
            nats += net.g.forward(net.loss, {net.x, block.data(), 1, ig::Index(n)},
                                  {net.y, ig::TokenBlock{target.data(), 1, ig::Index(n)}});
            net.g.backward(net.loss);
            adam.step();
        }
        const double now = score(dev, net.predict(x_dev, count), tags, of_entities);
        if (now > best) {
            best = now;
            best_tags = net.predict(x_test, count);
        }
        say("epoch %td: %.4f nats, %s on dev %.2f %%\n", epoch + 1, nats / static_cast<double>(order.size()),
            measure, 100 * now);
    }
    say("best on dev %.2f %%, there on test: %s %.2f %%\n", 100 * best, measure,
        100 * score(test, best_tags, tags, of_entities));
    if (!o.predictions.empty()) {
        ig::file::write_atomically(o.predictions, [&](ig::file::OutputFile& out) {
            for (const auto t : best_tags) out.write(tags.names[std::size_t(t)] + "\n");
        });
    }
    if (!o.against.empty()) compare(o, test, best_tags, tags);
    return 0;
}

}  // namespace lt
