// The interface of everything that learns a text.
#pragma once

#include <isogloss/io/checkpoint.hpp>
#include <string>
#include <vector>

#include "tasks.hpp"

// How well a text was predicted.
struct Foreseen {
    double bits = 0;       // per predicted symbol, except the first of the text
    double success = 0;    // not a number if nothing counts as one
    double saturated = 0;  // share of units on a sparse graph at a bound of V or a in all of the second half
};

// Accumulates predictions position by position.
class Judge {
public:
    explicit Judge(const tasks::Text& text) : text_(text), best_(text.x.size(), 0) {}
    // p: probabilities of the symbol at position t ≥ 1
    template <class T> void position(tasks::Index t, const T* p) {
        const auto at = static_cast<std::size_t>(t);
        best_[at] = static_cast<tasks::Token>(std::max_element(p, p + text_.vocabulary()) - p);
        if (!text_.predicted[at]) return;
        nats_ -= std::log(std::max(static_cast<double>(p[text_.x[at]]), 1e-300));
        ++count_;
    }
    Foreseen verdict() const {
        return {nats_ / std::log(2.0) / static_cast<double>(std::max<tasks::Index>(count_, 1)),
                text_.task ? tasks::success(text_, best_) : std::numeric_limits<double>::quiet_NaN()};
    }

private:
    const tasks::Text& text_;
    std::vector<tasks::Token> best_;
    double nats_ = 0;
    tasks::Index count_ = 0;
};

// A model in training.
struct Learner {
    virtual ~Learner() = default;
    virtual void prepare(double) {}  // before a round: the share of the training that is done
    virtual void round() = 0;        // one round of training
    virtual Foreseen foresee(const tasks::Text& text) = 0;  // predicts each symbol from those before
    virtual std::vector<tasks::Token> sample(tasks::Index length, std::uint64_t seed) = 0;
    virtual void keep() = 0;   // stores the model as the best so far
    virtual void stop() = 0;   // stores the state of training, and restores the best model
    virtual void go_on() = 0;  // after a load: resumes training where it stopped
    // Leaves a state that predicts other texts badly: restores the best model and goes on from there in
    // another way, which is returned in words. Empty if this training knows no other way; nothing has changed then.
    virtual std::string go_back() { return {}; }
    virtual void parts(isogloss::io::Checkpoint& c) = 0;  // names all contents of a file
    virtual tasks::Index doublings() const { return 0; }  // of the training text, still to come
    virtual tasks::Index cut() const { return 0; }        // see Options
    virtual std::string state() const { return {}; }      // learning rates and the like
};
