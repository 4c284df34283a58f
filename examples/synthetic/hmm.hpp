// A hidden Markov model as a learner: every round is one step of Baum-Welch on the whole text.
#pragma once

#include <isogloss/hmm/hmm.hpp>
#include <optional>

#include "learner.hpp"
#include "options.hpp"

class Markov final : public Learner {
public:
    Markov(const Options& o, const tasks::Text& text)
        : symbols_(text.symbols),
          model_({.states = o.units, .symbols = text.vocabulary(), .prior = 0.01, .seed = o.seed}),
          text_{text.x} {}

    void round() override { model_.step(text_); }
    Foreseen foresee(const tasks::Text& text) override {
        Judge judge(text);
        model_.predict(text.x, [&](tasks::Index t, std::span<const double> p) {
            if (t > 0) judge.position(t, p.data());
        });
        return judge.verdict();
    }
    std::string sample(tasks::Index length, std::uint64_t seed) override {
        std::string text;
        for (const auto v : model_.sample(length, isogloss::Random(seed, isogloss::stream_of("sample"))))
            text += symbols_[static_cast<std::size_t>(v)];
        return text;
    }
    void keep() override { kept_ = model_; }
    void restore() override {
        if (kept_) model_ = *kept_;
    }

private:
    std::string_view symbols_;
    isogloss::hmm::Hmm model_;
    std::optional<isogloss::hmm::Hmm> kept_;
    std::vector<std::vector<tasks::Token>> text_;
};
