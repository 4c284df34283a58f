/// @file train.cpp  The training loop: what happens in an epoch, and how it stops and goes on.
#include "presets.hpp"
#include "training.hpp"

namespace lm {

namespace {

/// The options that a model to start from decides: those of the model, the others at their defaults.
Options options_of_model(const Options& stored) {
    std::set<std::string> of_model;
    each_option(stored, [&](const char* name, const auto&, Kind kind, auto&&...) {
        if (kind == Kind::model) of_model.insert(name);
    });
    Options o;
    copy_named(stored, o, of_model);
    return o;
}

/// Throws unless the parameters of a model to start from have a place in this one.
void require_same_architecture(const Options& o, const Options& model) {
    std::set<std::string> which = {"cell", "layers", "units", "embedding", "head", "level", "unit-rows"};
    if (o.cell == "rhn") which.insert("depth");
    if (o.head == "tied") which.insert("head-bias");
    const auto differ = differences(o, model, which);
    if (!differ.empty())
        throw ig::GraphError(ig::text("--start-from: '", o.start_from, "' is another kind of model: ", differ,
                                      ". Leave these options out, or train anew without --start-from"));
}

/// Throws where one option makes another meaningless, or would destroy what is read.
void require_one_vocabulary(const Options& o, const std::set<std::string>& named) {
    if (o.start_from.empty() && o.vocabulary.empty()) return;
    if (!o.start_from.empty() && !o.vocabulary.empty())
        throw ig::GraphError(
            "--vocabulary and --start-from are both given, and the model to start from has a "
            "vocabulary; leave one out");
    for (const char* name : {"min-count", "max-vocabulary"})
        if (named.contains(name))
            throw ig::GraphError(ig::text("--", name, " has no effect: the vocabulary is that of ",
                                          o.start_from.empty() ? "--vocabulary" : "--start-from",
                                          "; leave it out"));
    std::error_code none;
    for (const auto& output : {o.model, o.model + ".train"})
        if (std::filesystem::equivalent(o.start_from, output, none))
            throw ig::FileError(ig::text("--start-from '", o.start_from,
                                         "' would be written over; give --model another "
                                         "name"));
}

/// The options of this run: those of the command line over a preset, over what was stored, those of the model
/// to start from, or the defaults.
Options resolve(const Options& given, const std::set<std::string>& named, const Options* stored) {
    std::optional<Options> start;
    if (!stored && !given.start_from.empty()) start = stored_options(ig::Safetensors::open(given.start_from));
    Options o = stored ? *stored : start ? options_of_model(*start) : Options{};
    if (!given.corpus.empty()) o.corpus = given.corpus;
    if (!given.preset.empty()) {
        if (o.corpus.empty() && given.train.empty()) o.corpus = "ptb";
        apply_preset(o, given.preset, o.corpus);
        if (named.contains("units") && !named.contains("embedding")) o.embedding = 0;
    }
    if (start || !given.preset.empty()) {  // what is named replaces what is said there in other words
        if (named.contains("alpha") && !named.contains("gamma")) o.gamma.reset();
        if (named.contains("gamma") && !named.contains("alpha")) o.alpha.reset();
        if (named.contains("keep")) o.keep_input = o.keep_state = o.keep_output = std::nullopt;
    }
    copy_named(given, o, named);
    settle(o, o.train.empty() && o.corpus.empty());
    if (start) require_same_architecture(o, *start);
    if (!stored) {
        require_one_vocabulary(o, named);
        return o;
    }
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
    const auto stored = stored_options(file);
    const auto epochs = stored.epochs;
    const bool stopped = file.find("state/health/validation") &&  // not in files of earlier versions
                         stop_of(stored, epoch, file.scalar<std::uint64_t>("state/best_epoch"),
                                 file.scalar<double>("state/best"),
                                 file.scalar<double>("state/health/validation")) != Stop::none;
    if (static_cast<ig::Index>(epoch) <= epochs && !stopped)
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
