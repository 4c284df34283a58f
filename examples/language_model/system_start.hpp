/// @file system_start.hpp  A model that begins as a linear dynamical system, the file of `lds_text fit`.
#pragma once

#include <isogloss/lds/files.hpp>
#include <isogloss/lds/rnn_start.hpp>
#include <string>

#include "model.hpp"
#include "options.hpp"

namespace lm {

/// A system with its vocabulary.
using System = ig::lds::LdsFile<float>;

/// How large its states and its output matrix are at the start, see lds::start_rnn. Power 0 is the paper's.
struct SystemScale {
    double rms = 0.3, gain = 1, power = 0;
};

/// The options of the model that begins as a system: one layer of as many units as it has states, a free head, no
/// dropout, cross-entropy.
inline Options options_of_system(const System& it, const std::string& cell) {
    Options o;
    o.cell = cell;
    o.layers = 1;
    o.units = {it.system.states()};
    o.head = "free";
    o.loss = "ce";
    o.keep = 1;
    settle(o, false);
    return o;
}

/// Sets the parameters of a built model by the system's: word vectors and softmax, and those of an rnn. A cell with gates
/// has no matrix that the transition could be: it stays as it was drawn, between the system's words.
inline void start_as(const System& it, Graph& g, const Options& o, const SystemScale& scale = {}) {
    const std::string cell = o.cell == "rnn" ? "rnn1" : "";
    const auto of_cell = [&](const char* name) { return cell.empty() ? "" : cell + name; };
    ig::lds::start_rnn(g, it.system, ig::lds::steady_state(it.system), it.xx_filtered,
                       {.input = of_cell(".W"),
                        .recurrent = of_cell(".U"),
                        .bias = of_cell(".b"),
                        .rms = scale.rms,
                        .gain = scale.gain,
                        .power = scale.power});
}

}  // namespace lm
