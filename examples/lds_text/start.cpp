/// @file start.cpp  A model of the program language_model that begins as a system.
#include <isogloss/io.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>

#include "../language_model/model_file.hpp"
#include "common.hpp"

namespace lt {

int start(const StartCommand& o) {
    files::Outputs().read("--model", o.model).write("--out", o.out, lm::model_kind()).check();
    const auto it = lds::load_lds<float>(o.model);
    lm::Options m;
    m.cell = o.cell;
    m.layers = 1;
    const ig::Index states = it.system.states();
    m.units = {states};
    m.head = "free";
    m.loss = "ce";
    m.keep = 1;
    m.init = o.init;
    m.seed = o.seed;
    lm::settle(m, false);
    lm::Graph g({.time = 1, .batch = 1, .seed = o.seed});
    lm::build(g, m, it.vocabulary.size());
    // A cell with gates has no matrix that the system's transition could be: it begins at random, between the system's words.
    const std::string cell = m.cell == "rnn" ? "rnn1" : "";
    const auto of_cell = [&](const char* name) { return cell.empty() ? "" : cell + name; };
    lds::start_rnn(g, it.system, lds::steady_state(it.system), it.xx_filtered,
                   {.input = of_cell(".W"),
                    .recurrent = of_cell(".U"),
                    .bias = of_cell(".b"),
                    .rms = o.rms,
                    .gain = o.gain,
                    .power = o.power});
    std::string words = it.vocabulary.to_text();
    ig::io::Checkpoint().model(g).text("vocabulary", words).save(o.out, lm::metadata(lm::to_json(m, false)));
    say("%td words, %td units, %s: language_model train --start-from %s --cell %s --layers 1 --units %td "
        "--head free\n",
        it.vocabulary.size(), states,
        cell.empty() ? "word vectors and softmax of the system, the cell at random"
                     : "all of it the system's",
        o.out.c_str(), m.cell.c_str(), states);
    return 0;
}

}  // namespace lt
