// keyboard.hpp  A language model that trains, predicts and learns where it runs: on a phone, in a browser.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <isogloss/graph/graph.hpp>
#include <isogloss/io/checkpoint.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/node/dropout.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/lstm.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/random.hpp>
#include <isogloss/update/sgd.hpp>
#include <isogloss/word_index.hpp>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "units.hpp"

namespace keyboard {

namespace ig = isogloss;
using ig::Index, ig::Token;

/// Sizes and rates of a Keyboard.
struct Options {
    Index units = 64;               ///< of the LSTM, and the width of the word vectors, ≥ 1
    Index spare = 1000;             ///< rows for words that are typed later, ≥ 0
    Index time = 32;                ///< most tokens between two steps, ≥ 1
    Index batch = 8;                ///< columns in training, ≥ 1; 1 suffices for a model that is only used
    Index budget = Index{4} << 20;  ///< bytes for blocks of logits, > 0
    double keep = 0.8;              ///< probability of keeping an entry of a vector in training
    double learn = 0.2;             ///< rate of the step on a sentence, ≥ 0
    std::uint64_t seed = 1;         ///< of the initial values and the masks
};

/// What a text takes to predict.
struct Score {
    double nats = 0;
    Index units = 0;  ///< words, marks and ends of paragraphs

    /// Per unit, of those that are spelled as of the others.
    double perplexity() const { return std::exp(nats / double(std::max<Index>(units, 1))); }
    Score& operator+=(const Score& more) {
        nats += more.nats, units += more.units;
        return *this;
    }
};

/// A word or mark that may come next.
struct Prediction {
    std::string_view word;
    double probability;  ///< among all that may come, or among the words that complete what is typed
};

/// A language model of words that can also spell: an LSTM, its table tied to the softmax.
///
///     token 0      end of a paragraph
///     token 1, 2   begin and end of a word that has no row; between them
///     token 3 …    its bytes, 256 in all
///     token 259 …  words and marks, one row each; then the spare rows, of probability 0
///
/// So every text has a probability. A word without a row that is learned for the second time takes a spare row: a vector
/// as long as the others are on average, in the direction of the states before the word, and the average bias; the step on
/// the same sentence then moves it. When no row is left, words remain spelled.
///
/// Predictions come from a second graph, with weights rounded to 8 bits, anew after each sentence learned. predict() and
/// learn() allocate nothing, except that a row for a word of more than 15 bytes allocates its spelling.
/// Errors: UsageError for options out of range, FileError for a file that is not a keyboard's.
class Keyboard {
public:
    static constexpr Token paragraph = 0, begin = 1, end = 2, first_byte = 3, first_word = 259;
    static constexpr Index most_predictions = 16;

    /// A new model with rows for these words.
    Keyboard(const std::vector<std::string>& words, const Options& options)
        : options_(options),
          rows_(first_word + std::ssize(words) + options.spare),
          g_({.time = options.time, .batch = options.batch, .seed = options.seed, .budget = options.budget}),
          net_(g_, rows_, options),
          y_(g_.tokens("y", rows_)),
          loss_(g_.add<ig::CrossEntropy>("loss", {}, net_.o, y_)),
          E_(g_.parameter("E")),
          bias_(g_.parameter("softmax.b")),
          update_(g_.parameters(), {.rate = options.learn, .clip = 5}),
          packed_(g_.packed_weights(ig::Precision::int8)),
          fast_({.time = 1}, packed_),
          fast_net_(fast_, rows_, options),
          index_(words) {
        index_.reserve(rows_ - first_word);
        for (Index t = first_word + index_.size(); t < rows_; ++t) {
            std::fill_n(E_.value + t * E_.cols, E_.cols, 0.0F);
            bias_.value[t] = never;
        }
        for (auto* tokens : {&input_, &tokens_, &fed_, &typed_}) tokens->reserve(most_tokens + 1);
        units_.reserve(most_units);
        fresh_.reserve(most_units);
        start();
    }
    Keyboard(const Keyboard&) = delete;
    Keyboard& operator=(const Keyboard&) = delete;

    /// The model in a file; sizes are those of the file.
    static std::unique_ptr<Keyboard> load(const std::filesystem::path& path, Options options = {}) {
        const auto file = ig::io::Safetensors::open(path);
        const auto program = file.metadata().find("program");
        if (program == file.metadata().end() || program->second != "keyboard")
            throw ig::FileError(path.string(),
                                ": found a model of another program, expected one that a keyboard saved");
        const auto& table = file.expect("E", ig::io::DType::f32).shape;
        const auto& carried = file.expect("state/graph/carried/lstm.h", ig::io::DType::f32).shape;
        std::vector<std::string> words;
        for (auto left = file.characters("state/words"); !left.empty();) {
            const std::size_t n = left.find('\n');
            words.emplace_back(left.substr(0, n));
            left.remove_prefix(std::min(n, left.size() - 1) + 1);
        }
        if (table.size() != 2 || carried.size() != 2 || table[0] < first_word + std::ssize(words))
            throw ig::FileError(path.string(), ": found ", words.size(),
                                " words, more than its table has rows");
        options.units = table[1], options.batch = carried[0];
        options.spare = table[0] - first_word - std::ssize(words);
        auto model = std::make_unique<Keyboard>(words, options);
        model->checkpoint().load(file);
        model->read_context(model->g_);
        if (model->last_ >= static_cast<std::uint64_t>(table[0]) || model->once_.size() != once_bytes)
            throw ig::FileError(path.string(), ": its state is not that of a keyboard");
        return model;
    }
    /// Writes all of it: what is loaded goes on to the bit.
    void save(const std::filesystem::path& path) {
        g_.states().reset();
        write_context(g_);
        names_.clear();
        for (const std::string& word : index_.words()) (names_ += word) += '\n';
        checkpoint().save(path, {{"program", "keyboard"}});
    }

    Index rows() const { return rows_; }
    /// How many words and marks have a row.
    Index words() const { return index_.size(); }
    const std::string& word(Index i) const { return index_[i]; }
    bool knows(std::string_view word) const { return index_.find(word) >= 0; }
    Index weights() { return g_.parameters().elements(); }
    /// Bytes of both graphs and of the weights in 8 bits.
    std::size_t memory() const { return g_.memory() + fast_.memory() + packed_.packed_bytes(); }

    // --- typing -----------------------------------------------------------------------------------

    /// The k ≤ 16 words and marks likeliest after the beginning of a sentence, which what was learned last precedes; if it
    /// ends within a word, the completions of that. The answer is valid until the next call.
    std::span<const Prediction> predict(std::string_view sentence, Index k) {
        ig::require("predict", "k", k, 1, most_predictions);
        if (sentence.size() > most_tokens / 4) sentence.remove_prefix(sentence.size() - most_tokens / 4);
        typed_.clear();
        std::string_view word;
        Units reader(sentence);
        for (auto unit = reader.next(); !unit.empty(); unit = reader.next()) {
            if (reader.rest().empty() && Units::is_word(unit)) word = unit;
            else encode(unit, typed_);
        }
        follow(typed_);
        fast_.head(fast_net_.o).log_probabilities(0, {log_p_.data(), 1, rows_});
        Index found = 0;
        double mass = 0;
        for (Index i = 0; i < index_.size(); ++i) {
            if (!std::string_view(index_[i]).starts_with(word)) continue;
            const double p = std::exp(double(log_p_[static_cast<std::size_t>(first_word + i)]));
            mass += p;
            if (found == k && !(p > best_[static_cast<std::size_t>(k - 1)].probability)) continue;
            if (found < k) ++found;
            auto at = static_cast<std::size_t>(found - 1);
            for (; at > 0 && best_[at - 1].probability < p; --at) best_[at] = best_[at - 1];
            best_[at] = {index_[i], p};
        }
        const auto best = std::span(best_).first(static_cast<std::size_t>(found));
        if (!word.empty())
            for (auto& one : best) one.probability /= std::max(mass, 1e-300);
        return best;
    }

    /// Learns a text, one step for each sentence, and returns what each took to predict before its step.
    Score learn(std::string_view text) {
        Score score;
        std::size_t tokens = 0;
        const auto sentence = [&] {
            if (!units_.empty()) score += learn_sentence();
            units_.clear();
            tokens = 0;
        };
        Units reader(text);
        for (auto unit = reader.next(); !unit.empty(); unit = reader.next()) {
            units_.push_back(unit);
            tokens += unit.size() + 2;
            if (Units::ends_sentence(unit) || units_.size() == most_units ||
                tokens + Units::longest + 2 > most_tokens)
                sentence();
        }
        sentence();
        return score;
    }

    /// Forgets what precedes: a text begins.
    void start() {
        std::fill(context_.h.begin(), context_.h.end(), 0.0F);
        std::fill(context_.c.begin(), context_.c.end(), 0.0F);
        last_ = paragraph;
        fed_.clear();
    }

    // --- whole texts ------------------------------------------------------------------------------

    /// What a text takes to predict, from its start and without learning from it.
    Score evaluate(std::string_view text) { return evaluate(tokens_of(text)); }
    Score evaluate(std::span<const Token> tokens) {
        const Context before = context_;
        const auto last = last_;
        start();
        const Score score = run(tokens, [](Index, Index) {});
        context_ = before, last_ = last;
        return score;
    }
    /// A text of so many words and marks from a start, drawn from p^(1/temperature). Letters come in words alone.
    std::string sample(Index units, double temperature, std::uint64_t seed) {
        const Context before = context_;
        const auto last = last_;
        start();
        const ig::Random random(seed, ig::stream_of("sample"));
        Writer text;
        std::string word;
        typed_.clear();
        follow(typed_);
        Token t = paragraph;
        for (Index said = 0, drawn = 0; said < units; ++drawn) {
            const bool spelling = t == begin || (t >= first_byte && t < first_word);
            fast_.head(fast_net_.o).probabilities(0, {log_p_.data(), 1, rows_}, temperature);
            const auto allowed = [&](Index i) {
                if (!spelling) return i < end || i >= first_word;
                return i == end ? !word.empty() : i >= first_byte && i < first_word;
            };
            double total = 0;
            for (Index i = 0; i < rows_; ++i)
                if (allowed(i)) total += log_p_[static_cast<std::size_t>(i)];
            double left = total * random.uniform(drawn);
            for (Index i = 0; i < rows_; ++i) {
                if (!allowed(i) || !(log_p_[static_cast<std::size_t>(i)] > 0)) continue;
                t = static_cast<Token>(i);
                if ((left -= log_p_[static_cast<std::size_t>(i)]) < 0) break;
            }
            if (spelling && word.size() >= Units::longest) t = end;
            feed(t);
            if (t == begin) continue;
            if (t >= first_byte && t < first_word) {
                word += static_cast<char>(t - first_byte);
                continue;
            }
            text.add(t == paragraph ? Units::paragraph
                     : t == end     ? std::string_view(word)
                                    : index_[t - first_word]);
            word.clear();
            ++said;
        }
        context_ = before, last_ = last;
        fed_.clear();
        return text.text();
    }

    /// The tokens of a text.
    std::vector<Token> tokens_of(std::string_view text) const {
        std::vector<Token> tokens;
        Units reader(text);
        for (auto unit = reader.next(); !unit.empty(); unit = reader.next()) encode(unit, tokens);
        return tokens;
    }
    /// Whether a unit ends with this token.
    static bool completes(Token t) { return t == paragraph || t == end || t >= first_word; }

private:
    friend class Training;

    // The nodes of both graphs.
    struct Net {
        ig::Tokens x;
        ig::Seq<float> h;
        ig::Logits<float> o;
        Net(ig::Graph<float>& g, Index rows, const Options& options) {
            x = g.tokens("x", rows);
            auto E = g.weight("E", rows, options.units, ig::uniform(0.1));
            h = g.add<ig::Embedding>("embed", {.keep = options.keep}, x, E);
            h = g.add<ig::Lstm>("lstm", {.units = options.units}, h);
            h = g.add<ig::Dropout>("dropout", {.keep = options.keep, .variational = true}, h);
            o = g.add<ig::TiedSoftmax>("softmax", {.bias = true}, h, E);
        }
    };
    struct Context {
        std::vector<float> h, c;
    };
    // An occurrence of a word that has just been given a row: of which token it is the beginning, and its row.
    struct Fresh {
        Index at, row;
    };

    static constexpr std::size_t most_tokens = 4096, most_units = 512;
    static constexpr std::size_t once_slots = 4096, once_bytes = once_slots * sizeof(std::uint32_t);
    static constexpr float never = -1e4F;  // bias of a row without a word

    ig::io::Checkpoint checkpoint() {
        ig::io::Checkpoint c;
        c.model(g_).text("words", names_).text("once", once_).counter("last", last_);
        return c;
    }

    void encode(std::string_view unit, std::vector<Token>& to) const {
        if (unit == Units::paragraph) return to.push_back(paragraph);
        if (const Token t = index_.find(unit); t >= 0) return to.push_back(first_word + t);
        spell(unit, to);
    }
    static void spell(std::string_view unit, std::vector<Token>& to) {
        to.push_back(begin);
        for (const char c : unit) to.push_back(first_byte + static_cast<unsigned char>(c));
        to.push_back(end);
    }

    void write_context(ig::Graph<float>& g) const {
        std::copy(context_.h.begin(), context_.h.end(), g.states().at("lstm.h").data());
        std::copy(context_.c.begin(), context_.c.end(), g.states().at("lstm.c").data());
    }
    void read_context(ig::Graph<float>& g) {
        std::copy_n(g.states().at("lstm.h").data(), context_.h.size(), context_.h.begin());
        std::copy_n(g.states().at("lstm.c").data(), context_.c.size(), context_.c.begin());
    }

    // Runs over tokens from the context on, in segments; after(first, n) follows the pass that predicts n from `first` on.
    template <class After> Score run(std::span<const Token> tokens, After&& after) {
        Score score;
        g_.training(false);
        write_context(g_);
        for (Index first = 0, n; first < std::ssize(tokens); first += n) {
            n = std::min(options_.time, std::ssize(tokens) - first);
            const auto target = tokens.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n));
            input_.assign(1, static_cast<Token>(last_));
            input_.insert(input_.end(), target.begin(), target.end() - 1);
            g_.forward(loss_, {net_.x, std::span<const Token>(input_)}, {y_, target});
            score.nats += g_.result(loss_).cross_entropy();
            last_ = static_cast<std::uint64_t>(target.back());
            after(first, n);
        }
        read_context(g_);
        score.units = std::count_if(tokens.begin(), tokens.end(), completes);
        return score;
    }

    // One step on units_.
    Score learn_sentence() {
        const Index known = index_.size();
        tokens_.clear();
        fresh_.clear();
        for (const auto unit : units_) {
            Token t = unit == Units::paragraph ? 0 : index_.find(unit);
            if (t < 0 && met_before(unit) && first_word + index_.size() < rows_) t = index_.insert(unit);
            if (t >= known) fresh_.push_back({std::ssize(tokens_), first_word + t});
            if (t < 0 || t >= known) spell(unit, tokens_);
            else encode(unit, tokens_);
        }
        const auto learn = [&](Index, Index) {
            g_.backward(loss_);
            update_.step();
        };
        Score score;
        if (fresh_.empty()) {
            score = run(tokens_, learn);
        } else {
            before_ = context_;
            const auto last = last_;
            auto next = fresh_.begin();
            score = run(tokens_, [&](Index first, Index n) {
                const auto h = g_.value(net_.h);
                for (; next != fresh_.end() && next->at < first + n; ++next)
                    for (Index i = 0; i < E_.cols; ++i)
                        E_.value[next->row * E_.cols + i] += h.data()[(next->at - first) * E_.cols + i];
            });
            for (Index t = first_word + known; t < first_word + index_.size(); ++t) begin_row(t, known);
            context_ = before_, last_ = last;
            tokens_.clear();
            for (const auto unit : units_) encode(unit, tokens_);
            run(tokens_, learn);
        }
        stale_ = true;
        return score;
    }

    // Whether a word was met before, which is remembered by 32 bits of its hash until another takes its place.
    bool met_before(std::string_view word) {
        const std::uint64_t hash = ig::file::hash_bytes(word);
        const auto tag = static_cast<std::uint32_t>(hash >> 32) | 1U;
        char* const slot = once_.data() + hash % once_slots * sizeof tag;
        std::uint32_t there;
        std::memcpy(&there, slot, sizeof there);
        std::memcpy(slot, &tag, sizeof tag);
        return there == tag;
    }

    // The row of a word, which holds the sum of the states before it: as long as the first `known` ones on average.
    void begin_row(Index row, Index known) {
        float* const vector = E_.value + row * E_.cols;
        const auto norm = [&](const float* v) {
            return std::sqrt(std::inner_product(v, v + E_.cols, v, 0.0));
        };
        double length = 0, bias = 0;
        for (Index t = first_word; t < first_word + known; ++t)
            length += norm(E_.value + t * E_.cols), bias += double(bias_.value[t]);
        const double own = norm(vector), n = double(std::max<Index>(known, 1));
        for (Index i = 0; i < E_.cols; ++i)
            vector[i] = static_cast<float>(own > 0 ? double(vector[i]) / own * length / n : 0);
        bias_.value[row] = static_cast<float>(bias / n);
    }

    void feed(Token t) { fast_.forward(fast_net_.o, {fast_net_.x, std::span<const Token>(&t, 1)}); }
    // Brings the fast graph to the state after these tokens.
    void follow(std::span<const Token> tokens) {
        if (stale_) {
            packed_.repack();
            fed_.clear();
            stale_ = false;
        }
        const bool goes_on = !fed_.empty() && fed_.size() - 1 <= tokens.size() &&
                             std::equal(fed_.begin() + 1, fed_.end(), tokens.begin());
        if (!goes_on) {
            write_context(fast_);
            fed_.assign(1, static_cast<Token>(last_));
            feed(fed_[0]);
        }
        for (const Token t : tokens.subspan(fed_.size() - 1)) {
            feed(t);
            fed_.push_back(t);
        }
    }

    Options options_;
    Index rows_;
    ig::Graph<float> g_;
    Net net_;
    ig::Tokens y_;
    ig::Loss<float> loss_;
    ig::Parameter<float>&E_, &bias_;
    ig::Sgd<float> update_;
    ig::SharedWeights<float> packed_;
    ig::Graph<float> fast_;  // of packed weights, for predictions
    Net fast_net_;
    bool stale_ = true;  // the weights have changed since they were packed

    ig::WordIndex index_;                               // word i has token first_word + i
    std::string once_ = std::string(once_bytes, '\0');  // see met_before
    std::string names_;                                 // of the words, in files

    // The state before what comes next, and the last token, which has not been fed yet.
    Context context_ = {std::vector<float>(static_cast<std::size_t>(options_.units)),
                        std::vector<float>(static_cast<std::size_t>(options_.units))};
    std::uint64_t last_ = paragraph;
    Context before_ = context_;

    std::vector<std::string_view> units_;
    std::vector<Fresh> fresh_;
    std::vector<Token> input_, tokens_, typed_;
    std::vector<Token> fed_;  // to the fast graph since the context
    std::vector<float> log_p_ = std::vector<float>(static_cast<std::size_t>(rows_));
    std::array<Prediction, most_predictions> best_ = {};
};

}  // namespace keyboard
