// LSTM on minibatches: the text lies in columns side by side, which are read in segments.
#pragma once

#include <isogloss/update/riemannian/riemannian.hpp>
#include <optional>

#include "graph_model.hpp"
#include "options.hpp"

class Cells final : public GraphModel<float> {
public:
    Cells(const Options& options, const Text& text)
        : GraphModel<float>(text,
                            {.time = options.steps, .batch = columns(options, text), .seed = options.seed}),
          metric_(options.metric),
          columns_(columns(options, text)),
          length_((text.size() - 1) / columns_),
          x_(static_cast<std::size_t>(options.steps * columns_)),
          y_(x_.size()),
          text_(text.x),
          targets_(targets(text)) {
        const auto E = g.weight("E", text.vocabulary(), std::min<Index>(text.vocabulary(), options.units),
                                ig::normal(0.5));
        const auto e = g.add<ig::Embedding>("embed", {}, x, E);
        finish(g.add<ig::Lstm>("lstm", {.units = options.units, .forget_bias = 1}, e));
        const bool all = metric_ == "gradient";
        adam_.emplace(g.parameters(all ? "*" : "E"),
                      ig::AdamOptions{.rate = options.adam_rate, .clip = 1, .divisor = ig::Divisor::tokens});
        const ig::RiemannianOptions natural{
            .modulus = metric_ == "rbpm" ? ig::UnitModulus::rbpm : ig::UnitModulus::ruop,
            .form = options.form == "full"       ? ig::MetricForm::full
                    : options.form == "diagonal" ? ig::MetricForm::diagonal
                                                 : ig::MetricForm::quasi_diagonal,
            .rate = options.natural_rate,
            .damping = options.natural_damping,
            .clip = 1};
        if (!all) lstm_.emplace(g, "lstm.*", natural), head_.emplace(g, "out.*", natural);
    }

    // One segment.
    void round() override {
        const Index T = std::min(g.capacity().time, length_ - at_);
        for (Index t = 0; t < T; ++t)
            for (Index b = 0; b < columns_; ++b) {
                const auto from = static_cast<std::size_t>(b * length_ + at_ + t),
                           to = static_cast<std::size_t>(t * columns_ + b);
                x_[to] = text_[from];
                y_[to] = targets_[from];
            }
        if (at_ == 0) g.reset();
        at_ = at_ + T < length_ ? at_ + T : 0;
        g.forward(l, {x, {x_.data(), T, columns_}}, {y, {y_.data(), T, columns_}});
        g.backward(l);
        if (lstm_) {
            if (lstm_->wants_modulus()) g.template backward<ig::Modulus>(l);
            lstm_->step();
            head_->step();
        }
        adam_->step();
    }

private:
    static Index columns(const Options& o, const Text& text) {
        return std::clamp<Index>(o.columns, 1, std::max<Index>(1, (text.size() - 1) / 2));
    }

    std::string metric_;
    Index columns_, length_, at_ = 0;
    std::vector<Token> x_, y_, text_, targets_;
    std::optional<ig::Adam<float>> adam_;
    std::optional<ig::Riemannian<float>> lstm_, head_;
};
