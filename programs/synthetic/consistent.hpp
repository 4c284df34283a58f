// Options that fit each other and the file that is loaded: what has no effect is refused.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "model_file.hpp"
#include "options.hpp"

// Takes the stored options from a file. Throws DataError if a given option differs; those of how a task draws its
// texts may, as long as it is the same task.
inline void take_stored(Options& o, const CLI::App& app, const isogloss::io::Safetensors& file) {
    using isogloss::DataError, isogloss::message;
    Options stored = stored_options(file);
    nlohmann::json of_file;
    each_stored(stored, [&](const char* name, const auto& value, const char*) { of_file[name] = value; });
    each_stored(o, [&](const char* name, auto& value, const char*) {
        const nlohmann::json given = value;
        if (app.count(name) > 0 && given != of_file[name]) {
            if (stored.level == "task" && name != std::string_view("--task") &&
                std::find(task_options.begin(), task_options.end(), std::string_view(name)) !=
                    task_options.end()) {
                o.changed += message(o.changed.empty() ? "" : ", ", name, ' ', given.dump(), " in place of ",
                                     of_file[name].dump());
                return;
            }
            throw DataError(message(name, " is ", given.dump(), ", but the model in '", o.load, "' has ",
                                    of_file[name].dump(), "; leave ", name, " out"));
        }
        of_file[name].get_to(value);
    });
    const bool words = stored.level == "words";
    if ((o.chars && stored.level != "chars") || (o.words && !words))
        throw DataError(message(o.chars ? "--chars" : "--words", " is given, but the model in '", o.load,
                                "' is of ", stored.level, "; leave it out"));
    o.level = stored.level;
    o.start = stored.start;
    o.cut = stored.cut;
    o.text_hash = stored.text_hash;
    if (o.starts > 1)
        throw DataError(message("--starts is ", o.starts, ", but the model in '", o.load,
                                "' has already started training; leave --starts out"));
    if (app.count("--doublings") > 0)
        throw DataError(message("--doublings is given, but the model in '", o.load, "' has started with ",
                                "another text, of which ", stored.doublings,
                                " doublings are still to come; leave --doublings out"));
    o.doublings = stored.doublings;
    if (app.count("--seconds") == 0 && o.rounds == 0) o.seconds = 0;  // only evaluate
}

// Options that apply in some calls alone.
struct Scope {
    bool applies;
    const char* to;
    std::vector<const char*> names;
};
inline std::vector<Scope> scopes(const Options& o, bool trains) {
    const bool own = o.level != "task", full = o.full_batches(), steps = o.network != "hmm" && !full,
               metric = o.metric != "gradient", adam = metric ? o.network == "lstm" : !(o.sgd_rate > 0),
               resumable = !own || !o.text.empty() || o.network == "hmm";  // hmm: its values are all it has
    return {{!own, "texts drawn by a task", task_options},
            {own, "--text", {"--min-count", "--chars", "--words"}},
            {o.lines == 0 || o.validation_length == 0,
             "texts without --lines or without --validation-length",
             {"--length"}},
            {o.task == "alphabet", "--task alphabet", {"--insert-digits", "--insert-capitals"}},
            {o.task == "xor", "--task xor", {"--bits", "--training-bits-from", "--answer-only"}},
            {o.task == "anbn", "--task anbn", {"--shortest", "--longest", "--validation-longest"}},
            {o.task == "dyck", "--task dyck", {"--depth"}},
            {o.task == "copy", "--task copy", {"--lag", "--noise"}},
            {o.sparse(),
             "networks on a graph (glnn to rnn)",
             {"--edges", "--activation", "--bound", "--pull", "--slowest"}},
            {o.sparse() || o.training != "full", "networks on a graph (glnn to rnn)", {"--training"}},
            {o.network != "hmm", "networks", {"--metric"}},
            {o.network != "hmm" && metric, "networks trained by ruop or rbpm", {"--form"}},
            {full,
             "full batches (--training full)",
             {"--start-rate", "--up", "--down", "--conjugate", "--doublings"}},
            {full && metric, "full batches by ruop or rbpm", {"--damping"}},
            {steps, "minibatches", {"--steps", "--lasting", "--anneal", "--average"}},
            {steps && metric,
             "minibatches by ruop or rbpm",
             {"--natural-rate", "--head-rate", "--natural-damping", "--natural-floor"}},
            {steps && metric && o.sparse(), "minibatches by ruop or rbpm on graphs", {"--decay"}},
            {steps && !metric, "minibatches by gradient", {"--sgd-rate"}},
            {steps && adam,
             "Adam: minibatches by gradient without --sgd-rate, and the input table of an lstm",
             {"--adam-rate"}},
            {trains, "training (with --load: by --seconds or --rounds)", {"--anneal", "--csv"}},
            {resumable, "calls with the training text (--text)", {"--save"}},
            {trains || !o.beside.empty(), "training, and to curves of --beside", {"--curve"}},
            {!o.curve.empty(), "--curve", {"--beside"}},
            {!o.write.empty(), "--write", {"--overwrite"}}};
}

// Names of the options given that say neither how a task draws its texts nor where they are written.
inline std::vector<std::string> beyond_texts(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        const std::string name = option->get_name();
        const auto is = [&](std::string_view other) { return name == other; };
        const bool of_texts = std::any_of(task_options.begin(), task_options.end(), is) || is("--seed") ||
                              is("--load") || is("--write") || is("--overwrite") || is("--json");
        if (option->count() > 0 && !of_texts) names.push_back(name);
    }
    return names;
}

// Throws DataError for incompatible options.
inline void require_together(const Options& o, const CLI::App& app, bool loaded) {
    using isogloss::message;
    const bool trains = o.seconds > 0 || !loaded, own = o.level != "task";
    std::string wrong = fault(o);
    if (!(o.seconds >= 0 && std::isfinite(o.seconds)) || o.rounds < 0 || o.sample < 0 ||
        o.sample > tasks::longest_text)
        wrong = message("found seconds = ", o.seconds, ", rounds = ", o.rounds, ", sample = ", o.sample,
                        "; expected finite numbers of at least 0, and sample at most ", tasks::longest_text);
    if (!(o.anneal >= 0 && o.anneal <= 1)) wrong = message("found anneal = ", o.anneal, ", expected 0 to 1");
    if (o.rounds > 0 && o.seconds == 0)
        wrong =
            message("--rounds is ", o.rounds, ", but --seconds 0 leaves them no time; leave --seconds out");
    for (const Scope& scope : scopes(o, trains))
        for (const char* name : scope.names)
            if (wrong.empty() && !scope.applies && app.count(name) > 0)
                wrong =
                    message(name, " is given, but it applies to ", scope.to, " alone; leave ", name, " out");
    if (o.chars && o.words) wrong = "--chars and --words are both given; choose one";
    if (own && o.valid.empty()) wrong = "--valid is missing: the text to validate on";
    if (own && trains && o.text.empty()) wrong = "--text is missing: the text to train on";
    if (!own && (!o.text.empty() || !o.valid.empty()))
        wrong = message("the model in '", o.load, "' is of task ", o.task,
                        ", which draws its texts; leave --text "
                        "and --valid out");
    if (!o.write.empty() && wrong.empty())
        if (const auto names = beyond_texts(app); !names.empty())
            wrong = message(names[0], " is given, but --write only writes the texts of a task; leave ",
                            names[0], " out, or --write");
    if (own && !o.write.empty()) wrong = "--write writes the texts of a task; leave it out, or --text";
    if (!wrong.empty()) throw isogloss::DataError(wrong);
}
