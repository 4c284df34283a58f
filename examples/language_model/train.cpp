/// @file train.cpp  The training loop: what happens in an epoch, and how it stops and goes on.
#include <isogloss/text/lines.hpp>
#include <utility>

#include "../shared/lock.hpp"
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

/// Throws where a new training names an option that has no effect beside the others.
void require_effect(const Options& o, const std::set<std::string>& named) {
    const auto require = [&](bool fine, const char* name, const std::string& what) {
        if (!fine && named.contains(name))
            throw ig::GraphError(
                ig::text("--", name, " has no effect with ", what, "; leave one of them out"));
    };
    for (const char* name : {"gamma", "alpha"}) require(o.loss == "al", name, "--loss " + o.loss);
    require(o.loss == "mixture", "beta", "--loss " + o.loss);
    for (const char* name : {"temperature", "differentiate-target"})
        require(o.loss != "ce", name, "--loss " + o.loss);
    require(o.cell == "rhn", "depth", "--cell " + o.cell);
    const bool natural = o.update == "ruop" || o.update == "rbpm";
    for (const char* name : {"damping", "floor", "head-rate", "table-rate"})
        require(natural, name, "--update " + o.update);
    require(o.schedule == "decay", "decay-from", "--schedule " + o.schedule);
}

/// Throws where a file that --resume looks for again has a name that the options cannot be stored with.
void require_utf8(const Options& o) {
    for (const auto& [name, path] : {std::pair("train", o.train), std::pair("valid", o.valid),
                                     std::pair("test", o.test), std::pair("log", o.log)})
        if (ig::bad_byte(path))
            throw ig::GraphError(
                ig::text("--", name, " ", ig::in_quotes(path),
                         " is not UTF-8, and --resume could not find it again; give the file ",
                         "another name, or a link to it"));
}

/// Throws unless all files that a training writes may be written.
void require_outputs(const Options& o) {
    const Texts texts = find_texts(o);
    files::Outputs()
        .read("--train", texts.train.path)
        .read("--valid", texts.valid.path)
        .read("--test", texts.test ? texts.test->path : "")
        .write("--model", o.model, model_kind())
        .write("--model", o.model + ".train", model_kind())
        .write_unmarked("--model", o.model + ".lock", false)
        .write("--log", o.log, files::table("log of language_model", Log::header))
        .check();
}

/// Throws where starting anew would destroy a training that is not finished.
void require_finished(const std::string& state) {
    if (!files::exists(state)) return;
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
    const std::string state = given.model + ".train";
    files::Outputs().write_unmarked("--model", given.model, true).check();  // its folder, for the lock
    const files::Lock lock("--model", given.model);
    std::optional<Training> training;
    const auto begin = [&](const ig::Safetensors* file) {
        const auto stored = file ? std::optional(stored_options(*file)) : std::nullopt;
        const Options o = resolve(given, named, stored ? &*stored : nullptr);
        require_utf8(o);
        if (!file) require_effect(o, named);
        require_outputs(o);
        if (!file && !given.overwrite) require_finished(state);
        if (!file && given.resume)
            std::cout << "resume      '" << state
                      << "' is not there yet: the training starts from the beginning\n";
        training.emplace(o, file);
    };
    if (given.resume && files::exists(state)) {
        const auto file = ig::Safetensors::open(state);
        begin(&file);
    } else {
        begin(nullptr);
    }
    return training->run();
}

}  // namespace lm
