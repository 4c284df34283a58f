/// @file presets.hpp  Recipes as options.
#pragma once

#include "options.hpp"

namespace lm {

/// Sets the options of a recipe for a corpus ("ptb" or "wikitext-2").
///
/// small, medium  of Inan, Khosravi, Socher 2017, section 6; start values: Zaremba, Sutskever, Vinyals 2014.
///                gamma is the middle of the range given for a corpus. Ours: epochs and patience, and the bias
///                of the tied head, which the paper sets to 0 (section 4): with it validation is lower in every
///                epoch (docs/lab/language_model_search.md has both). The gradient is sampled and products are
///                of bfloat16 where that is faster: of five trainings of the small network the medians lie
///                within the spread of exact ones (docs/loss/sampled_gradients.md); medium has not been
///                compared.
/// fast           ours, half an hour of one core with bfloat16: the small network, on Penn Treebank wider and
///                with separate masks, penalties and weight decay; with cross-entropy, whose step costs two
///                thirds of that of the augmented loss, batches of half the size, and a rate that ends at 0.
/// wide           ours, some five core-hours with bfloat16: the masks and penalties of the AWD-LSTM of Merity,
///                Keskar, Socher 2018 on two layers, with masks on the states in place of dropped weights, and
///                a rate that rises and falls once; chosen on Penn Treebank
///                (docs/lab/language_model_search.md).
inline void apply_preset(Options& o, const std::string& preset, const std::string& corpus) {
    const bool wikitext = corpus == "wikitext-2", medium = preset == "medium";
    o.cell = "lstm";
    o.layers = 2;
    o.units = {medium ? 650 : 200};
    o.embedding = o.units[0];
    o.keep = medium ? (wikitext ? 0.6 : 0.5) : wikitext ? 0.8 : 0.7;
    o.keep_words = o.keep_weights = 1;
    o.keep_input = o.keep_between = o.keep_state = o.keep_output = std::nullopt;
    o.scheme = "tied";
    o.head = "tied";
    o.head_bias = true;
    o.loss = "al";
    o.gamma = wikitext ? 1.25 : 0.65;
    o.alpha = o.beta = std::nullopt;  // those of a model to start from
    o.adversarial = o.ar = o.tar = 0;
    o.temperature = 20;
    o.target = "differentiated";
    o.init = medium ? 0.05 : 0.1;
    o.update = "sgd";
    o.rate = 1;
    o.clip = 5;
    o.weight_decay = 0;
    o.schedule = "decay";
    o.decay_from = medium ? 10 : 5;
    o.decay = 0.9;
    o.batch = 20;
    o.bptt = 35;
    o.random_bptt = false;
    o.epochs = 40;
    o.patience = 10;
    o.precision = "auto";
    o.epsilon = 1. / 256;
    if (preset == "small" || medium) return;

    o.loss = "ce";
    o.gamma.reset();
    o.schedule = "one-cycle";
    o.decay.reset();
    o.warm_up = 0.05;
    o.patience = 0;
    if (preset == "fast") {
        o.batch = 10;
        o.keep = wikitext ? 0.8 : 0.75;
        o.epochs = wikitext ? 4 : 13;
        if (wikitext) return;
        o.units = {300};
        o.embedding = 300;
        o.weight_decay = 2e-4;
        o.keep_input = 0.85;
        o.keep_between = 0.9;
    } else {
        o.units = {1152, 400};
        o.embedding = 400;
        o.keep = 0.6;
        o.keep_input = 0.6;
        o.keep_words = 0.9;
        o.keep_state = 0.65;
        o.keep_between = 0.75;
        o.init = 0.05;
        o.rate = 1.5;
        o.weight_decay = 1.5e-4;
        o.epochs = wikitext ? 30 : 70;
    }
    o.scheme = "recurrent";
    o.ar = 2;
    o.tar = 1;
}

}  // namespace lm
