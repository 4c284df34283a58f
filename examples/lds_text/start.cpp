/// @file start.cpp  A model for the program language_model, initialised from a system.
#include <isogloss/io.hpp>
#include <isogloss/isogloss.hpp>

#include "../language_model/model_file.hpp"
#include "../language_model/system_start.hpp"
#include "common.hpp"

namespace lt {

int start(const StartCommand& o) {
    files::Outputs().read("--model", o.model).write("--out", o.out, lm::model_kind()).check();
    const auto it = lds::load_lds<float>(o.model);
    lm::Options m = lm::options_of_system(it, o.cell);
    m.init = o.init;
    m.seed = o.seed;
    lm::settle(m, false);  // depends on these two
    lm::Graph g({.time = 1, .batch = 1, .seed = o.seed});
    lm::build(g, m, it.vocabulary.size());
    lm::start_as(it, g, m, {.rms = o.rms, .gain = o.gain, .power = o.power});
    std::string words = it.vocabulary.to_text();
    ig::io::Checkpoint().model(g).text("vocabulary", words).save(o.out, lm::metadata(lm::to_json(m, false)));
    say("%td words, %td units, %s: language_model train --start-from %s --cell %s --layers 1 --units %td "
        "--head free\n",
        it.vocabulary.size(), it.system.states(),
        m.cell == "rnn" ? "all of it the system's"
                        : "word vectors and softmax of the system, the cell at random",
        o.out.c_str(), m.cell.c_str(), it.system.states());
    return 0;
}

}  // namespace lt
