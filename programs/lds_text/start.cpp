/// @file start.cpp  A model for the program language_model, initialised from a system.
#include "../language_model/print.hpp"
#include "common.hpp"
#include "language_model.hpp"

namespace lt {

int start(const StartCommand& o) {
    files::Outputs().read("--model", o.model).write("--out", o.out, lm::model_kind()).check();
    const auto it = lds::load_lds<float>(o.model);
    lm::Options m = lm::options_of_system(it, o.cell);
    m.init = o.init;
    m.seed = o.seed;
    LanguageModel model(m, it.vocabulary);
    lm::start_as(it, model.graph(), model.options(), {.rms = o.rms, .gain = o.gain, .power = o.power});
    model.save(o.out);
    say("%td words, %td units, %s: language_model train --start-from %s --model FILE%s\n",
        it.vocabulary.size(), it.system.states(),
        m.cell == "rnn" ? "all of it the system's"
                        : "word vectors and softmax of the system, the cell at random",
        lm::shell_word(o.out).c_str(), m.cell == "rnn" ? " --rate 0.1" : "");
    return 0;
}

}  // namespace lt
