// Trains a network on a synthetic source of known entropy rate, or on a given text, for a given computing
// time.
//
//     synthetic --task music --network glnn --metric ruop --units 20 --length 50000 --seconds 60
//     synthetic --text train.txt --valid valid.txt --chars --units 100 --seconds 600 --save model.safetensors

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>

#include "../shared/csv_log.hpp"
#include "../shared/lock.hpp"
#include "../shared/program.hpp"
#include "consistent.hpp"
#include "curve.hpp"
#include "full_batches.hpp"
#include "hmm.hpp"
#include "minibatches.hpp"
#include "model_file.hpp"
#include "texts.hpp"
#include "train.hpp"
#include "verdict.hpp"

namespace {

using isogloss::message;

void write(const std::string& path, const Text& text) {
    std::string shown;
    for (const Token v : text.x) shown += text.shown(v);
    isogloss::file::OutputFile out(path);
    out.write(shown);
    out.commit();
}

std::unique_ptr<Learner> make_learner(const Options& o, const Text& train) {
    if (o.network == "hmm") return std::make_unique<Markov>(o, train);
    if (o.full_batches()) return std::make_unique<FullBatches>(o, train);
    return std::make_unique<Minibatches>(o, train);
}

int run(const Options& o, const std::optional<isogloss::io::Safetensors>& file, bool trains) {
    const bool writes = !o.write.empty();
    if (o.portable) isogloss::portable(true);
    const Texts texts =
        o.level == "task"
            ? drawn_texts(o)
            : own_texts(o, std::string(file ? file->characters("state/symbols") : std::string_view()));
    if (writes) {
        write(o.write + ".train", texts.train);
        write(o.write + ".valid", texts.valid);
        const double source = tasks::source_bits(texts.valid);
        if (o.json)
            std::cout << program::dump({{"source_bits", source}, {"entropy_bits", texts.entropy}})
                      << std::endl;
        else std::printf("source_bits=%.5f entropy_bits=%.5f\n", source, texts.entropy);
        return 0;
    }
    std::FILE* const shown = o.json ? stderr : stdout;
    std::fprintf(shown, "%s, %td units%s, %s\n", o.network.c_str(), o.units,
                 o.sparse() ? message(", ", o.edges, " edges").c_str() : "", method(o, texts.train).c_str());
    if (file && !texts.hash.empty() && !o.text_hash.empty() && texts.hash != o.text_hash)
        std::fprintf(shown, "the training text is another one than that of the model in '%s'\n",
                     o.load.c_str());
    if (!o.changed.empty())
        std::fprintf(shown, "the texts are other ones than those of the model in '%s': %s\n", o.load.c_str(),
                     o.changed.c_str());
    Curve curve(o.beside);
    // Opened at the first look, so that a call that is refused leaves the file as it was.
    std::optional<files::CsvLog> csv;
    interrupt::catch_signals();
    std::unique_ptr<Learner> learner;  // the best so far
    Progress best;
    Options of_best;
    std::optional<Ending> ending;  // of the best
    bool sound = true;
    double used = 0;
    std::uint64_t rounds = 0;
    std::string symbols = texts.symbols;
    for (Index start = 0; start < o.starts && !(interrupt::wanted && learner); ++start) {
        Options own = o;
        own.start += start;
        if (!texts.hash.empty()) own.text_hash = texts.hash;
        auto candidate = make_learner(own, texts.train);
        Progress at;
        if (file) {
            // Without the training text no training state can be restored.
            const bool all = !texts.own() || !o.text.empty() || o.network == "hmm";
            try {
                checkpoint(*candidate, at, symbols)
                    .load(*file, all ? isogloss::io::Restore::everything : isogloss::io::Restore::parameters);
            } catch (const isogloss::FileError& error) {
                if (o.changed.empty()) throw;
                throw isogloss::FileError(message(
                    error.text(), "\nWith ", o.changed,
                    " the text may be cut into another number of columns; give it about as many lines"));
            }
            if (trains) {
                // This call may choose by another text than the last.
                const double bits = foresee(*candidate, texts.choice).bits;
                at.bits = std::isfinite(bits) ? bits : Progress().bits;
                candidate->go_on();
            }
        }
        const std::uint64_t before = at.rounds;
        const double seconds_before = at.seconds;
        std::optional<Ending> end;
        if (trains) {
            // With --load the curve goes on after its rows of earlier rounds.
            const auto earlier = [&](std::string_view row) {
                const auto fields = files::csv_fields(row);
                if (!file || fields.size() < 6) return false;
                const auto done = files::csv_number(fields[1]), by = files::csv_number(fields[5]);
                if (by && *by != static_cast<double>(own.start))
                    throw isogloss::FileError(message(
                        "--csv '", o.csv, "' has the curves of several --starts, whose rounds are counted ",
                        "together, but '", o.load,
                        "' goes on with one of them; it was left unchanged. Give --csv another name"));
                return done && *done < static_cast<double>(rounds + at.rounds);
            };
            end = train(*candidate, own, at, o.seconds / static_cast<double>(o.starts), o.rounds, texts,
                        shown, [&](const Foreseen& seen, const Foreseen& chosen) {
                            if (!csv) csv.emplace(o.csv, Curve::header, earlier);
                            csv->append(message(used + at.seconds, ',', rounds + at.rounds, ',', seen.bits,
                                                ',', chosen.bits, ',', chosen.success, ',', own.start, ',',
                                                chosen.saturated));
                            curve.add({used + at.seconds, seen.bits, chosen.bits, own.start});
                        });
            sound &= end->sound;
        }
        used += at.seconds - seconds_before, rounds += at.rounds - before;
        if (!learner || at.bits < best.bits)
            learner = std::move(candidate), best = at, of_best = own, ending = end;
    }
    of_best.doublings = learner->doublings(), of_best.cut = learner->cut();
    if (!o.save.empty()) checkpoint(*learner, best, symbols).save(o.save, metadata(of_best));
    const Verdict verdict{learner->foresee(texts.train),
                          learner->foresee(texts.valid),
                          texts.longer ? std::optional(learner->foresee(*texts.longer)) : std::nullopt,
                          o.sample > 0 ? drawn(*learner, o, texts.train) : std::string(),
                          rounds,
                          used,
                          !texts.own() || !o.text.empty(),
                          ending};
    warn(o, verdict.trained, verdict.valid, std::numeric_limits<double>::infinity(), "at the best moment");
    if (o.json) std::cout << program::dump(as_json(verdict, o, texts)) << std::endl;
    else print(verdict, texts);
    if (!o.curve.empty())
        curve.draw(o.curve, message(o.network, ", ", method(o, texts.train)), texts.entropy);
    if (interrupt::wanted) return interrupt::status();
    return sound && std::isfinite(verdict.valid.bits) ? 0 : 1;
}

int work(int argc, char** argv) {
    Options o;
    CLI::App app("Networks on synthetic sources of known entropy rate, or on a text of your own");
    app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    each_stored(o, [&](const char* name, auto& value, const char* help) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, bool>) app.add_flag(name, value, help);
        else app.add_option(name, value, help);
    });
    app.add_option("--text", o.text, "file to train on, in place of a task");
    app.add_option("--valid", o.valid, "file that chooses the best moment and is reported");
    app.add_flag("--chars", o.chars, "--text: its symbols are characters (the default)");
    app.add_flag("--words", o.words, "--text: its symbols are words and line ends");
    app.add_option("--save", o.save, "file for the model and all that its training needs");
    app.add_option("--load", o.load,
                   "model of an earlier call: evaluate it, or continue training for --seconds or --rounds");
    app.add_option("--seconds", o.seconds, "computing time; no limit where --rounds alone is given");
    app.add_option("--anneal", o.anneal,
                   "minibatches: rates are full for this share of --seconds or --rounds, and then fall to 0; "
                   "1: to the end");
    app.add_option(
        "--rounds", o.rounds,
        "maximum number of rounds of each network: segments, full batches or steps of Baum-Welch; 0: any");
    app.add_option("--starts", o.starts,
                   "networks that share the time, one after the other; the best on a second text counts")
        ->check(CLI::Range(1, 1000));
    app.add_option("--doublings", o.doublings,
                   "full batches: train on a text that doubles this many times up to its full length")
        ->check(CLI::Range(0, 20));
    app.add_option("--sample", o.sample, "symbols to draw from the trained model");
    app.add_option("--csv", o.csv, "file for the learning curve");
    app.add_option(
        "--curve", o.curve,
        "SVG file for the learning curve as a figure, with the entropy rate as a line (needs gnuplot)");
    app.add_option("--beside", o.beside,
                   "--curve: learning curves of other calls (their --csv), drawn beside it")
        ->take_all();
    app.add_option("--write", o.write, "write the texts to PATH.train and PATH.valid and exit");
    app.add_flag("--json", o.json,
                 "for programs: the result as one object of JSON, progress on standard error");
    app.add_flag("--overwrite", o.overwrite, "--write even if files of these names exist");
    if (const auto end = program::parse(app, argc, argv)) return *end;
    std::optional<isogloss::io::Safetensors> file;
    if (!o.load.empty()) {
        file = isogloss::io::Safetensors::open(o.load);
        take_stored(o, app, *file);
    } else if (!o.text.empty() || !o.valid.empty()) {
        o.level = o.words ? "words" : "chars";
    }
    require_together(o, app, file.has_value());
    if (o.rounds > 0 && app.count("--seconds") == 0) o.seconds = std::numeric_limits<double>::infinity();
    const bool writes = !o.write.empty(), trains = !writes && (o.seconds > 0 || !file);
    files::Outputs()
        .read("--load", o.load)
        .read("--text", o.text)
        .read("--valid", o.valid)
        .write("--csv", o.csv, files::table("learning curve of synthetic", Curve::header))
        .read("--beside", o.beside)
        .write("--curve", o.curve, plot::kind())
        .write("--save", o.save, model_kind())
        .lock("--csv", trains ? o.csv : "")
        .lock("--save", trains ? o.save : "")
        .write_unmarked("--write", writes ? o.write + ".train" : "", o.overwrite)
        .write_unmarked("--write", writes ? o.write + ".valid" : "", o.overwrite)
        .check();
    // A second training would mix its rows with those of this one, and replace its model.
    std::optional<files::Lock> of_csv, of_save;
    if (trains && !o.csv.empty()) of_csv.emplace("--csv", o.csv);
    if (trains && !o.save.empty()) of_save.emplace("--save", o.save);
    return run(o, file, trains);
}

}  // namespace

int main(int argc, char** argv) { return program::run(argc, argv, work); }
