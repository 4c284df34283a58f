// training.hpp  Trains a Keyboard on a text, step by step, so that a page stays alive meanwhile.
#pragma once

#include <isogloss/elementary.hpp>
#include <isogloss/text/batches.hpp>
#include <isogloss/update/schedule.hpp>
#include <optional>

#include "keyboard.hpp"

namespace keyboard {

/// How a text is learned.
struct TrainingOptions {
    Index epochs = 4;         ///< passes over the text, ≥ 1
    Index most_words = 8000;  ///< most rows for words of the text, the most frequent that occur twice, ≥ 1
    double rate = 1;          ///< the highest of its cycle
    Index validations = 12;   ///< in all, ≥ 1
};

/// The training of a new model on the first nine tenths of a text; the last tenth validates it.
///
///     Training training(text, {}, {});
///     while (training.step()) …                    // training.progress()
///     training.keyboard()
///
/// Errors: DataError for a text of fewer than 400 words and marks.
class Training {
public:
    Training(std::string_view text, const Options& options, const TrainingOptions& how)
        : how_(how), options_(options) {
        std::size_t cut = text.size() - text.size() / 10;
        while (cut > 0 && cut < text.size() && text[cut] != ' ' && text[cut] != '\n') ++cut;
        keyboard_ = std::make_unique<Keyboard>(words_of(text.substr(0, cut)), options);
        tokens_ = keyboard_->tokens_of(text.substr(0, cut));
        held_out_ = keyboard_->tokens_of(text.substr(cut));
        held_out_.resize(std::min<std::size_t>(held_out_.size(), 5000));
        batches_.emplace(tokens_, keyboard_->rows(), keyboard_->g_.capacity());
        steps_ = batches_->count() * how.epochs;
        sgd_.emplace(keyboard_->g_.parameters(), ig::SgdOptions{.rate = how.rate, .clip = 5});
        start_at_frequencies();
        validate();
    }

    Keyboard& keyboard() { return *keyboard_; }
    std::unique_ptr<Keyboard> take() { return std::move(keyboard_); }

    Index steps() const { return steps_; }  ///< in all
    Index done() const { return done_; }    ///< of them
    Index tokens() const { return std::ssize(tokens_); }
    double unigram_perplexity() const { return unigram_; }  ///< of the held-out text
    double validation() const {
        return validation_;
    }  ///< perplexity of the held-out text, when last computed
    /// Perplexity of the training text since the last call.
    double training() {
        const Score recent = std::exchange(recent_, {});
        return recent.perplexity();
    }

    /// One step; false if there is none left.
    bool step() {
        if (done_ == steps_) return false;
        auto& g = keyboard_->g_;
        if (done_ % batches_->count() == 0) at_ = batches_->begin(), g.reset();
        else ++at_;
        const ig::OneCycle cycle{.rate = how_.rate, .warm_up = 0.05};
        sgd_->rate(cycle((double(done_) + 0.5) / double(steps_)));
        const ig::text::Batch& batch = *at_;
        g.training(true);
        g.forward(keyboard_->loss_, {keyboard_->net_.x, batch.input}, {keyboard_->y_, batch.target});
        g.backward(keyboard_->loss_);
        sgd_->step();
        keyboard_->stale_ = true;
        recent_.nats += g.result(keyboard_->loss_).cross_entropy();
        recent_.units += std::count_if(batch.target.data, batch.target.data + batch.target.size(),
                                       [](Token t) { return Keyboard::completes(t); });
        ++done_;
        const Index between = std::max<Index>(steps_ / how_.validations, 1);
        if (done_ % between == 0 || done_ == steps_) validate();
        return done_ < steps_;
    }

private:
    std::vector<std::string> words_of(std::string_view text) const {
        ig::WordIndex types;
        std::vector<Index> counts;
        Index units = 0;
        Units reader(text);
        for (auto unit = reader.next(); !unit.empty(); unit = reader.next(), ++units) {
            if (unit == Units::paragraph) continue;
            const auto t = static_cast<std::size_t>(types.insert(unit));
            if (t == counts.size()) counts.push_back(0);
            ++counts[t];
        }
        ig::require<ig::DataError>("training", "words and marks in the first nine tenths of the text", units,
                                   360);
        std::vector<Index> order;
        for (Index i = 0; i < types.size(); ++i)
            if (counts[static_cast<std::size_t>(i)] > 1) order.push_back(i);
        std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
            return counts[static_cast<std::size_t>(a)] > counts[static_cast<std::size_t>(b)];
        });
        order.resize(std::min(order.size(), static_cast<std::size_t>(how_.most_words)));
        std::vector<std::string> words;
        for (const Index i : order) words.push_back(types[i]);
        return words;
    }

    // Starts the bias at the logarithms of the frequencies, each token counted once more than it occurs, which is also the
    // unigram model to be compared with.
    void start_at_frequencies() {
        const Index types = Keyboard::first_word + keyboard_->words();
        std::vector<double> share(static_cast<std::size_t>(types), 1.0);
        for (const Token t : tokens_) ++share[static_cast<std::size_t>(t)];
        for (Index t = 0; t < types; ++t) {
            const double p = share[static_cast<std::size_t>(t)] / double(types + std::ssize(tokens_));
            share[static_cast<std::size_t>(t)] = ig::kernel::elementary::log(p);
            keyboard_->bias_.value[t] = static_cast<float>(share[static_cast<std::size_t>(t)]);
        }
        Score score;
        for (const Token t : held_out_) {
            score.nats -= share[static_cast<std::size_t>(t)];
            score.units += Keyboard::completes(t);
        }
        unigram_ = score.perplexity();
    }

    void validate() {
        const auto states = keyboard_->g_.states().saved();
        validation_ = keyboard_->evaluate(held_out_).perplexity();
        keyboard_->g_.states().restore(states);
    }

    TrainingOptions how_;
    Options options_;
    std::unique_ptr<Keyboard> keyboard_;
    std::vector<Token> tokens_, held_out_;
    std::optional<ig::text::Batches> batches_;
    std::optional<ig::Sgd<float>> sgd_;
    ig::text::Batches::Iterator at_;
    Index steps_ = 0, done_ = 0;
    double unigram_ = 0, validation_ = 0;
    Score recent_;
};

}  // namespace keyboard
