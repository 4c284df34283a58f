/// @file system_start.hpp  A model initialised from a linear dynamical system, a file of `lds_text fit`.
#pragma once

#include <isogloss/lds/files.hpp>
#include <isogloss/lds/rnn_start.hpp>
#include <string>

#include "model.hpp"
#include "options.hpp"

namespace lm {

/// A system with its vocabulary.
using System = ig::lds::LdsFile<float>;

/// Initial scale of the states and of the output matrix, see lds::start_rnn. Power 0 is that of the paper.
struct SystemScale {
    double rms = 0.3, gain = 1, power = 0;
};

/// The options of a model with one layer, a free head, no dropout, cross-entropy.
inline Options one_layer(ig::Index units, const std::string& cell) {
    Options o;
    o.cell = cell;
    o.layers = 1;
    o.units = {units};
    o.head = "free";
    o.loss = "ce";
    o.keep = 1;
    settle(o, false);
    return o;
}

/// The options of a model initialised from a system: such a layer with a unit for each state.
inline Options options_of_system(const System& it, const std::string& cell) {
    Options o = one_layer(it.system.states(), cell);
    if (it.vocabulary.level() == ig::text::Level::character) o.level = "character";
    return o;
}

/// Sets the parameters of a built model from the system: word vectors and softmax, and those of an rnn. A
/// gated cell has no counterpart of the transition: it keeps its random start values.
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
