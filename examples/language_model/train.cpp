/// @file train.cpp  The training loop: what happens in an epoch, and how it stops and goes on.
#include "training.hpp"

namespace lm {

namespace {

/// The options of this run: those of the command line over a preset, over what was stored or the defaults.
Options resolve(const Options& given, const std::set<std::string>& named, const Options* stored) {
    Options o = stored ? *stored : Options{};
    if (!given.corpus.empty()) o.corpus = given.corpus;
    if (!given.preset.empty()) {
        if (o.corpus.empty() && given.train.empty()) o.corpus = "ptb";
        apply_preset(o, given.preset, o.corpus);
        if (named.contains("alpha") && !named.contains("gamma")) o.gamma.reset();
        if (named.contains("units") && !named.contains("embedding")) o.embedding = 0;
    }
    copy_named(given, o, named);
    settle(o, o.train.empty() && o.corpus.empty());
    if (!stored) return o;
    const auto differ = differences(o, *stored);
    if (!differ.empty())
        throw ig::GraphError(ig::text("--resume: '", given.model, ".train' was begun with other options: ",
                                      differ, ". Leave them out, or train anew without --resume"));
    return o;
}

/// Throws where starting anew would destroy a training that is not finished.
void require_finished(const std::string& state) {
    if (!std::filesystem::exists(state)) return;
    const auto file = ig::Safetensors::open(state);
    const auto epoch = file.scalar<std::uint64_t>("state/epoch"),
               batch = file.scalar<std::uint64_t>("state/batch");
    const auto epochs = stored_options(file).epochs;
    if (static_cast<ig::Index>(epoch) <= epochs)
        throw ig::FileError(ig::text("'", state, "' holds a training that stopped in epoch ", epoch, " of ",
                                     epochs, ", after batch ", batch,
                                     ". Go on with --resume, or start anew with --overwrite"));
}

}  // namespace

int train(const Options& given, const std::set<std::string>& named) {
    require_replaceable(given.model);
    const std::string state = given.model + ".train";
    std::optional<Training> training;
    if (given.resume && std::filesystem::exists(state)) {
        const auto file = ig::Safetensors::open(state);
        const Options stored = stored_options(file);
        training.emplace(resolve(given, named, &stored), &file);
    } else {
        require_replaceable(state);
        if (!given.overwrite) require_finished(state);
        if (given.resume)
            std::cout << "resume      '" << state
                      << "' is not there yet: the training starts from the beginning\n";
        training.emplace(resolve(given, named, nullptr));
    }
    return training->run();
}

}  // namespace lm
