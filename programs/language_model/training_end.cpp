/// @file training_end.cpp  How a training ends: complete, stopped, run away or interrupted.
#include <cmath>
#include <csignal>

#include "../shared/interrupt.hpp"
#include "training.hpp"

namespace lm {

void Training::explain(Stop why) {
    if (why == Stop::none) return;
    std::cout << "\nThe training stops after epoch " << state_.epoch - 1 << " of " << o_.epochs << ": ";
    if (why == Stop::patience) {
        std::cout << counted(static_cast<ig::Index>(state_.epoch - 1 - state_.best_epoch), "epoch")
                  << " without a new best. To continue: --resume with another --patience" << std::endl;
        return;
    }
    const double perplexity = std::exp(health_.validation);
    std::cout << "it has run away. The validation\nperplexity is " << perplexity_in_words(perplexity);
    if (!std::isfinite(perplexity)) std::cout << ", expected a finite one";
    else if (is_hopeless(o_, health_.validation, vocabulary_.size()))
        std::cout << ", above 1000 times the " << grouped(vocabulary_.size()) << " types";
    else
        std::cout << ", more than " << exact(o_.runaway) << " times the best, "
                  << fixed(std::exp(state_.best), 2) << " of epoch " << state_.best_epoch;
    std::cout << ". Begin again with a lower --rate or " << (o_.clip > 0 ? "--clip" : "with --clip")
              << (o_.loss != "ce" && o_.target == "held" ? ", or with --target differentiated." : ".");
    if (std::isfinite(perplexity)) std::cout << " To continue nevertheless: --resume --runaway 0";
    std::cout << std::endl;
}

// The sentence on a training none of whose models may be saved.
std::string Training::without_best() const {
    return ig::message(state_.epoch == 1 ? "No epoch was completed" : "No epoch gave a model to keep", ": '",
                       o_.model, "' was not written.");
}

// The training has come to a number that is not finite, as `error` says. With several ranks, others are in the midst of a
// step: all are ended.
int Training::diverged(const std::string& error) {
    const std::string model =
        state_.best_epoch == 0
            ? without_best()
            : ig::message("The best model, of epoch ", state_.best_epoch, ", is in '", o_.model, "'.");
    const std::string text = ig::message(
        "\nThe training stops in epoch ", state_.epoch, " of ", o_.epochs, ", after batch ", state_.batch,
        ": it has run away. The cause:\n", error,
        "\n--resume would come to the same: rates are fixed once a training has begun. Begin again with "
        "--overwrite\nand a lower --rate",
        update_.natural() ? ", --head-rate or --table-rate."
        : o_.clip > 0     ? " or --clip."
                          : ", or with --clip.");
    if (ranks_.size() > 1) ranks_.end(3, text + '\n' + model);
    std::cout << text << std::endl;
    if (state_.best_epoch == 0) {
        std::cout << model << std::endl;
        return 3;
    }
    const int status = finish_run();
    return status == 0 ? 3 : status;
}

// Evaluates the best model.
int Training::finish_run() {
    ranks_.barrier();  // wait until the first has written it
    ig::io::Checkpoint().model(g_).load(ig::io::widened(ig::io::Safetensors::open(o_.model)),
                                        ig::io::Restore::parameters);
    const auto of = [this](const ig::text::Corpus& corpus) {
        return perplexity(corpus, [](auto...) { return interrupt::wanted == 0; });
    };
    const auto valid = of(valid_);
    std::cout << "\nThe best model, of epoch " << state_.best_epoch << ", is in '" << o_.model << "'.\n";
    const auto report = [this](const char* title, const Text& text, const ig::text::Corpus& corpus,
                               const std::optional<ig::Perplexity>& p) {
        if (p)
            std::cout << title << " " << text.name << "\n    " << describe(*p, corpus, vocabulary_, o_.batch)
                      << std::endl;
        return p.has_value();
    };
    // From here on the graph holds the best model, so a Ctrl-C must not write FILE.train.
    if (report("validation", texts_.valid, valid_, valid) &&
        (!test_ || report("test", *texts_.test, *test_, of(*test_))))
        return 0;
    if (!interrupt::wanted) interrupt::wanted = SIGTERM;  // another rank received a signal
    interrupt::out() << "Interrupted; the training has ended, and `language_model evaluate` repeats what is "
                        "missing."
                     << std::endl;
    return interrupt::status();
}

int Training::interrupted() {
    if (!interrupt::wanted) interrupt::wanted = SIGTERM;  // another rank received a signal
    save();
    interrupt::out() << "\nInterrupted at epoch " << state_.epoch << ", batch " << state_.batch
                     << "; the training is in '" << o_.model
                     << ".train'. To continue: language_model train --model " << shell_word(o_.model)
                     << " --resume" << std::endl;
    return interrupt::status();
}

}  // namespace lm
