/// @file train.cpp  The training loop: what happens in an epoch, and how it stops and goes on.
#include "training.hpp"

namespace lm {

namespace {

/// The options of this run: those of the command line over a preset, over what was stored or the defaults.
Options resolve(const Options& given, const std::set<std::string>& named, const Options* stored) {
    Options o = stored ? *stored : Options{};
    if (stored) o.preset.clear();
    if (!given.preset.empty()) {
        apply_preset(o, given.preset, given.corpus);
        if (named.contains("alpha") && !named.contains("gamma")) o.gamma.reset();
        if (named.contains("units") && !named.contains("embedding")) o.embedding = 0;
    }
    copy_named(given, o, named);
    settle(o, o.train.empty() && o.corpus.empty() && o.preset.empty());
    if (!stored) return o;
    const auto differ = differences(o, *stored, {Kind::model, Kind::training});
    if (!differ.empty())
        throw ig::GraphError(ig::text("--resume: '", given.model, ".train' was begun with other options: ", differ,
                                      ". Leave them out, or train anew without --resume"));
    return o;
}

}  // namespace

int train(const Options& given, const std::set<std::string>& named) {
    require_replaceable(given.model);
    const std::string state = given.model + ".train";
    require_replaceable(state);
    if (!given.resume || !std::filesystem::exists(state)) {
        if (given.resume) std::cout << "resume      '" << state << "' is not there yet: the training starts from the beginning\n";
        Training training(resolve(given, named, nullptr));
        return training.run();
    }
    const auto file = ig::Safetensors::open(state);
    const Options stored = stored_options(file);
    Training training(resolve(given, named, &stored), &file);
    return training.run();
}

}  // namespace lm
