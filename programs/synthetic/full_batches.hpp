// GLNN, GNN and RNN on a sparse graph, trained on the whole text as one batch by alternating steps.
#pragma once

#include <isogloss/update/riemannian/alternating.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "columns.hpp"
#include "graph_model.hpp"
#include "options.hpp"

class FullBatches final : public GraphModel<double> {
public:
    FullBatches(const Options& options, const Text& text)
        : FullBatches(options, text, largest(options, text)) {}

    void round() override { training_->round(); }
    // From the best model on, with the text cut between other lines and the first rates.
    std::string go_back() override {
        if (cuts(text_) < 2) return {};
        restore();
        cut_ = (cut_ + 1) % cuts(text_);
        begin(length_);
        return "in columns that begin at other lines";
    }
    // The training text doubles, from its first 2^-doublings to the whole for the last half of the training.
    void prepare(double share) override {
        left_ = static_cast<Index>(
            std::min(static_cast<double>(doublings_), std::floor(-std::log2(std::clamp(share, 1e-9, 1.0)))));
        const Index n = part(left_);
        if (n != length_) train_on(n);
        else if (interrupted_) training_->resume();
        interrupted_ = false;
    }
    Foreseen foresee(const Text& text) override {
        interrupted_ = true;
        return GraphModel<double>::foresee(text);
    }
    std::vector<Token> sample(Index length, std::uint64_t seed) override {
        interrupted_ = true;
        return GraphModel<double>::sample(length, seed);
    }
    std::string state() const override {
        return ig::message("rates ", training_->rate(0), " and ", training_->rate(1), ", cancelled ",
                           training_->cancelled(0), " and ", training_->cancelled(1));
    }
    void parts(ig::io::Checkpoint& c) override {
        GraphModel<double>::parts(c);
        c.state("training", *training_);
    }
    Index doublings() const override { return left_; }
    Index cut() const override { return cut_; }
    void go_on() override {
        GraphModel<double>::go_on();
        interrupted_ = true;
    }

private:
    struct Size {
        Index length = 0, count = 0;
    };
    FullBatches(const Options& options, const Text& text, Size most)
        : GraphModel<double>(
              text,
              // blocks of logits that fit a cache, plus 20 bytes of the loss for every position
              {.time = most.length,
               .batch = most.count,
               .seed = options.network_seed(),
               .budget = (1 << 20) + 24 * most.length * most.count}),
          text_(text),
          options_(options),
          doublings_(options.doublings),
          left_(options.doublings),
          cut_(options.cut % cuts(text)) {
        const auto a = add_sparse(options, text);
        auto to_predict = counts(text, true);
        if (options.metric == "gradient") {
            softmax_ = std::make_unique<ig::SearchStep<double>>(g.parameters("out.*"), a);
            transition_ = std::make_unique<ig::SearchStep<double>>(g.parameters("net.*"));
        } else {
            double total = 0;
            for (const double c : to_predict) total += c;
            for (double& c : to_predict) c /= total;
            softmax_ = std::make_unique<ig::SearchStep<double>>(
                g, "out.*", ig::SearchOptions{.damping = 0, .frequencies = std::move(to_predict)});
            transition_ =
                std::make_unique<ig::SearchStep<double>>(g, "net.*",
                                                         ig::SearchOptions{.modulus = options.named_modulus(),
                                                                           .form = options.named_form(),
                                                                           .damping = 0,
                                                                           .floor = options.damping});
        }
        softmax_->conjugate(options.conjugate);
        transition_->conjugate(options.conjugate);
        begin(part(doublings_));
    }

    // Training on the first n symbols, from the values that the parameters have and the first rates.
    void begin(Index n) {
        const ig::AlternatingTraining<double>::RateControl control{
            .rate = options_.start_rate > 0 ? options_.start_rate : 1 / static_cast<double>(options_.units),
            .up = options_.up,
            .down = options_.down};
        training_.emplace(g, l);
        training_->add(*softmax_, control);
        training_->add(*transition_, control);
        train_on(n);
    }

    // The number of positions in the first 2^-left of a text.
    static Index part(const Text& text, Index left) { return std::max<Index>((text.size() - 1) >> left, 1); }
    Index part(Index left) const { return part(text_, left); }
    // In how many ways the text is cut: it begins at one of so many lines.
    static Index cuts(const Text& text) {
        return std::clamp<Index>(std::ssize(text.begins) - 1, 1, most_cuts);
    }
    // The length of the longest column at any stage of any cut, and the greatest number of columns.
    static Size largest(const Options& options, const Text& text) {
        Size most;
        for (Index cut = 0; cut < cuts(text); ++cut)
            for (Index left = 0; left <= options.doublings; ++left) {
                const Columns parts = columns(options, text, part(text, left), cut);
                most = {std::max(most.length, parts.length()), std::max(most.count, parts.count())};
            }
        return most;
    }
    static Columns columns(const Options& options, const Text& text, Index n, Index cut) {
        const Text other = text.turned(cut * (std::ssize(text.begins) - 1) / cuts(text));
        const Index some = std::min(n, other.size() - 1);
        return {other, wanted_columns(options, other, some), some};
    }
    void train_on(Index n) {
        length_ = n;
        const Columns parts = columns(options_, text_, n, cut_);
        const Index T = parts.length(), B = parts.count();
        x_.resize(static_cast<std::size_t>(T * B)), y_.resize(x_.size());
        parts.segment(0, T, x_.data(), y_.data());
        training_->data({{{x, {x_.data(), T, B}}, {y, {y_.data(), T, B}}}});
    }

    const Text& text_;
    Options options_;
    Index length_ = 0;        // current symbols of the text
    Index doublings_, left_;  // of the text: in all, and still to come
    Index cut_;               // which of the cuts
    bool interrupted_ = false;
    std::vector<Token> x_, y_;
    std::unique_ptr<ig::SearchStep<double>> softmax_, transition_;
    std::optional<ig::AlternatingTraining<double>> training_;
};
