// GLNN, GNN and RNN on a sparse graph, trained on the whole text at once by alternating steps.
#pragma once

#include <isogloss/update/riemannian/alternating.hpp>
#include <isogloss/update/riemannian/softmax_step.hpp>
#include <isogloss/update/riemannian/transition.hpp>
#include <memory>
#include <optional>

#include "graph_model.hpp"
#include "options.hpp"

class Sparse final : public GraphModel<double> {
public:
    Sparse(const Options& options, const Text& text, Index longest_text)
        : GraphModel<double>(
              text,
              // blocks of logits that fit a cache, beside the 20 bytes that a loss holds of every position
              {.time = std::max(text.size(), longest_text) - 1,
               .seed = options.seed,
               .budget = (1 << 20) + 24 * std::max(text.size(), longest_text)}),
          inputs_(text.x.begin(), text.x.end() - 1),
          targets_(targets(text)) {
        const ig::SparseRecurrentOptions network{.units = options.units,
                                                 .edges = options.edges,
                                                 .activation = options.named_activation(),
                                                 .seed = options.seed,
                                                 .longest = options.longest,
                                                 .frequencies = counts(text, false)};
        const auto a = options.network == "glnn"  ? g.add<ig::Glnn>("net", network, x)
                       : options.network == "gnn" ? g.add<ig::Gnn>("net", network, x)
                                                  : g.add<ig::SparseRnn>("net", network, x);
        finish(a);
        training_.emplace(g, l);
        auto to_predict = counts(text, true);
        ig::start_at_frequencies(g, "out", to_predict);
        const double rate =
            options.start_rate > 0 ? options.start_rate : 1 / static_cast<double>(options.units);
        if (options.metric == "gradient") {
            softmax_ = std::make_unique<ig::GradientStep<double>>(g.parameters("out.*"), a);
            transition_ = std::make_unique<ig::GradientStep<double>>(g.parameters("net.*"));
        } else {
            double total = 0;
            for (const double c : to_predict) total += c;
            for (double& c : to_predict) c /= total;
            softmax_ = std::make_unique<ig::SoftmaxStep<double>>(g, "out", y, to_predict);
            transition_ = std::make_unique<ig::TransitionStep<double>>(
                g, "net",
                ig::TransitionOptions{
                    .modulus = options.metric == "ruop" ? ig::UnitModulus::ruop : ig::UnitModulus::rbpm,
                    .form = options.form == "full"       ? ig::MetricForm::full
                            : options.form == "diagonal" ? ig::MetricForm::diagonal
                                                         : ig::MetricForm::quasi_diagonal,
                    .damping = options.damping});
        }
        const ig::RateControl control{.rate = rate, .up = options.up, .down = options.down};
        softmax_->conjugate(options.conjugate);
        transition_->conjugate(options.conjugate);
        training_->add(*softmax_, control);
        training_->add(*transition_, control);
        doublings_ = options.doublings;
        train_on(std::max<Index>(std::ssize(inputs_) >> doublings_, 1));
    }

    void round() override { training_->round(); }
    // The text doubles, from its first 2^-doublings to the whole, which has the last half of the time.
    void prepare(double share) override {
        const Index left = static_cast<Index>(
            std::min(static_cast<double>(doublings_), std::floor(-std::log2(std::clamp(share, 1e-9, 1.0)))));
        const Index n = std::max<Index>(std::ssize(inputs_) >> left, 1);
        if (n != length_) train_on(n);
        else if (interrupted_) training_->resume();
        interrupted_ = false;
    }
    Foreseen foresee(const Text& text) override {
        interrupted_ = true;
        return GraphModel<double>::foresee(text);
    }
    std::string sample(Index length, std::uint64_t seed) override {
        interrupted_ = true;
        return GraphModel<double>::sample(length, seed);
    }
    std::string state() const override {
        return ig::message("rates ", training_->rate(0), " and ", training_->rate(1), ", cancelled ",
                           training_->cancelled(0), " and ", training_->cancelled(1));
    }

private:
    void train_on(Index n) {
        length_ = n;
        training_->data({{{x, {inputs_.data(), n, 1}}, {y, {targets_.data(), n, 1}}}});
    }

    Index length_ = 0, doublings_ = 0;  // of the text at present; how often it doubles
    bool interrupted_ = false;
    std::vector<Token> inputs_, targets_;
    std::unique_ptr<ig::SearchStep<double>> softmax_, transition_;
    std::optional<ig::AlternatingTraining<double>> training_;
};
