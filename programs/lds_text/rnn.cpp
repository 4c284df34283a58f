/// @file rnn.cpp  A recurrent language model, from random start values or from a system.
#include <algorithm>
#include <cmath>
#include <isogloss/io.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>
#include <isogloss/lds/rnn_start.hpp>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "../shared/csv_log.hpp"
#include "../shared/interrupt.hpp"
#include "../shared/lock.hpp"
#include "../shared/threads.hpp"
#include "common.hpp"
#include "language_model.hpp"
#include "texts.hpp"

namespace lt {

namespace {

/// Embedding → Rnn → Softmax, free or tied, with its loss.
struct RecurrentModel {
    RecurrentModel(const RnnCommand& o, ig::Index V, ig::Index h)
        : time(o.bptt),
          batch(o.batch),
          g({.time = time, .batch = batch, .seed = o.seed, .epsilon = o.epsilon}),
          x(g.tokens("x", V)),
          y(g.tokens("y", V)) {
        const auto init = ig::uniform(o.init);
        const auto E = g.weight("E", V, h, init);
        const auto hidden =
            g.add<ig::Rnn>("rnn", {.units = h, .init = init}, g.add<ig::Embedding>("embed", {}, x, E));
        loss = g.add<ig::CrossEntropy>(
            "loss", {},
            o.tied ? g.add<ig::TiedSoftmax>("softmax", {.bias = true}, hidden, E)
                   : g.add<ig::Softmax>("softmax", {.vocabulary = V, .init = init}, hidden),
            y);
    }

    /// As in the start from a system: an identity input matrix, and words at their frequencies.
    void start_at_frequencies(const ig::text::Vocabulary& vocabulary) {
        auto w = g.parameter("rnn.W").values();
        for (ig::Index i = 0; i < w.rows; ++i)
            for (ig::Index j = 0; j < w.cols; ++j) w.row(i)[j] = i == j ? 1.0f : 0.0f;
        float* b = g.parameter("softmax.b").value;
        const double all = static_cast<double>(vocabulary.total()) + static_cast<double>(vocabulary.size());
        for (const auto count : vocabulary.counts())
            *b++ = static_cast<float>(std::log((static_cast<double>(count) + 1) / all));
    }

    double perplexity(const ig::text::Corpus& corpus, ig::Token before_first) {
        return ig::evaluate(g, loss, x, y,
                            corpus.batches({time, batch},
                                           {.tail = ig::text::Tail::pad, .predict_first = before_first}))
            .value();
    }

    ig::Index time, batch;
    ig::Graph<float> g;
    ig::Tokens x, y;
    ig::Loss<float> loss;
};

/// The learning rate: constant until an epoch improves validation by less than 0.3 %, then geometric; the second
/// later epoch of this kind, next to the first or not, is the last.
struct Schedule {
    double rate, decay, before;
    bool falling = false, over = false;
    std::uint64_t bad = 0;

    void validated(double perplexity) {
        const bool improved = perplexity < before * 0.997;
        bad += !improved && falling;
        over = bad >= 2;
        falling = falling || !improved;
        if (falling) rate *= decay;
        before = perplexity;
    }
    /// For the checkpoint.
    template <class Visitor> void visit(Visitor& v) {
        v.number("rate", rate), v.number("before", before), v.flag("falling", falling), v.flag("over", over);
        v.counter("bad", bad);
    }
};

constexpr const char *kind_key = "isogloss.kind", *kind = "network of lds_text rnn",
                     *settings_key = "lds_text.rnn";

files::Kind network_kind() {
    return {"network of `lds_text rnn`", [](const std::string& path) {
                const auto file = ig::io::Safetensors::open(path);
                const auto at = file.metadata().find(kind_key);
                return at != file.metadata().end() && at->second == kind;
            }};
}

/// In a log, the perplexities of a test text that has become another: only that of the best epoch is known.
void retest(const std::string& path, std::uint64_t best_epoch, double perplexity) {
    if (path.empty() || !files::exists(path)) return;
    ig::file::LineReader lines(path);
    std::string all;
    for (std::string_view line; lines.next(line); all += '\n') {
        auto fields = files::csv_fields(line);
        const std::string found = fields[0] == ig::message(best_epoch) ? ig::message(perplexity) : "";
        if (lines.line() > 1 && fields.size() > 4) fields[4] = found;
        for (std::size_t i = 0; i < fields.size(); ++i) all.append(i ? "," : "").append(fields[i]);
    }
    ig::file::write_atomically(path, [&](ig::file::OutputFile& out) { out.write(all); });
}

/// The source of the words and the size of the network.
struct Start {
    std::optional<lds::LdsFile<float>> system;
    ig::text::Vocabulary vocabulary;
    ig::Index units;

    explicit Start(const RnnCommand& o) {
        if (!o.model.empty()) {
            for (const auto& [name, given] : {std::pair("--vocabulary", o.vocabulary.has_value()),
                                              std::pair("--units", o.units.has_value()),
                                              std::pair("--vocabulary-from", !o.vocabulary_from.empty())})
                if (given)
                    throw ig::UsageError(ig::message("rnn: ", name,
                                                     " has no effect with --model, whose words and states "
                                                     "they are; leave one of them out"));
            system = lds::load_lds<float>(o.model);
            vocabulary = system->vocabulary;
            units = system->system.states();
            return;
        }
        units = o.units.value_or(300);
        if (o.vocabulary_from.empty()) {
            for (const std::string& path : o.train)
                if (is_token_file(path))
                    throw ig::DataError(ig::message("rnn: '", path,
                                                    "' is a file of tokens, which holds no words; give the "
                                                    "vocabulary it was made with by --vocabulary-from, or a "
                                                    "system of its words by --model"));
            vocabulary = read_vocabulary(o.train, o.vocabulary.value_or(10000), 1);
            return;
        }
        if (o.vocabulary)
            throw ig::UsageError(
                "rnn: --vocabulary has no effect with --vocabulary-from; leave one of them out");
        vocabulary = stored_vocabulary(o.vocabulary_from);
    }
};

/// A complete training run, saved as it proceeds.
class RnnTraining {
public:
    RnnTraining(const RnnCommand& o, Start start)
        : o_(o),
          start_(std::move(start)),
          train_(corpus_of(o.train, start_.vocabulary)),
          valid_(corpus_of(o.valid, start_.vocabulary)),
          network_(o, start_.vocabulary.size(), start_.units),
          sgd_(network_.g.parameters(), {.rate = o.rate, .clip = o.clip}),
          schedule_{.rate = o.rate, .decay = o.decay, .before = 0} {
        if (!o.test.empty()) test_ = corpus_of(o.test, start_.vocabulary);
        if (start_.system)
            lds::start_rnn(
                network_.g, start_.system->system, lds::steady_state(start_.system->system),
                start_.system->xx_filtered,
                {.output = o.tied ? "E" : "softmax.W", .rms = o.rms, .gain = o.gain, .power = o.power});
        else network_.start_at_frequencies(start_.vocabulary);
        words_ = start_.vocabulary.to_text();
        checkpoint_.model(network_.g).state("sgd", sgd_).state("schedule", schedule_);
        checkpoint_.counter("epoch", epoch_)
            .counter("batch", batch_)
            .number("nats", nats_)
            .number("tokens", tokens_);
        checkpoint_.number("best", best_).number("at_best", at_best_).counter("best_epoch", best_epoch_);
        checkpoint_.text("vocabulary", words_).number("seconds", seconds_);
        if (!o.save.empty()) best_network_.emplace(options_of_model(), start_.vocabulary);
    }

    int run() {
        const bool going_on = o_.resume && files::has_content(state());
        if (going_on) load();
        else if (o_.resume)
            say("'%s' holds no training yet: the training starts from the beginning\n", state().c_str());
        if (!going_on) {
            best_ = schedule_.before = perplexity(valid_);
            if (!std::isfinite(best_))
                throw ig::NumericError("rnn: the perplexity of --valid before training is ", best_,
                                       "; use smaller start values (--gain, --rms, --init)");
        }
        // The test text is evaluated if validation is the best so far; otherwise the column is empty.
        log_.emplace(o_.log, rnn_header, [&](std::string_view row) {
            std::istringstream in{std::string(row)};
            std::uint64_t of = 0;
            return going_on && in >> of && of < epoch_;
        });
        if (!going_on) {
            if (test_) at_best_ = perplexity(*test_);
            row(0, 0, best_, test_.has_value(), 0);
            keep_best();
            save();
        }
        say("%td words, %td units, %s start; ", start_.vocabulary.size(), start_.units,
            start_.system ? "system's" : "random");
        if (going_on)
            say("resume at epoch %td, batch %td; best validation so far %.2f", std::ptrdiff_t(epoch_),
                std::ptrdiff_t(batch_), best_);
        else say("validation before training %.2f", best_);
        if (retested_) say(", on the test text, which is another now, %.2f", at_best_);
        say("\n");
        while (!over())
            if (!run_epoch() && !over()) return interrupted();
        say("best validation %.2f in epoch %td", best_, std::ptrdiff_t(best_epoch_));
        if (test_) say(", there on test %.2f", at_best_);
        say("\n");
        return 0;
    }

private:
    std::string state() const { return o_.save + ".train"; }
    bool over() const { return std::cmp_greater(epoch_, o_.epochs) || schedule_.over; }
    double perplexity(const ig::text::Corpus& text) {
        return network_.perplexity(text, start_.vocabulary.eos());
    }
    /// The settings of a training. All except the test text must be the same when it resumes.
    std::string settings() const {
        return ig::message(
            start_.system ? "system" : "random", ", units ", start_.units, ", batch ", o_.batch, ", bptt ",
            o_.bptt, ", rate ", o_.rate, ", decay ", o_.decay, ", clip ", o_.clip, ", rms ", o_.rms,
            ", gain ", o_.gain, ", power ", o_.power, ", init ", o_.init, ", seed ", o_.seed, ", words ",
            ig::file::hex16(start_.vocabulary.checksum()), ", text ", ig::file::hex16(train_.checksum()),
            o_.epsilon > 0 ? ig::message(", epsilon ", o_.epsilon) : "", o_.tied ? ", tied" : "",
            ", validation ", ig::file::hex16(valid_.checksum()), ", test ",
            test_ ? ig::file::hex16(test_->checksum()) : "none");
    }
    static std::string without_test(const std::string& settings) {
        return settings.substr(0, settings.rfind(", test "));
    }
    /// The options of the best network as a model of language_model; those of training are of no use there.
    lm::Options options_of_model() const {
        lm::Options m = lm::one_layer(start_.units, "rnn");
        if (start_.vocabulary.level() == ig::text::Level::character) m.level = "character";
        m.init = o_.init, m.seed = o_.seed, m.bptt = o_.bptt;
        if (o_.tied) m.head = "tied", m.head_bias = true;
        return m;
    }
    std::map<std::string, std::string> metadata() const {
        return {{kind_key, kind}, {settings_key, settings()}};
    }
    void save() const {
        if (!o_.save.empty()) checkpoint_.save(state(), metadata());
    }
    /// The values of a parameter in the best network, where the cell has the name that language_model gives it.
    float* of_best(const ig::Parameter<float>& p) {
        const bool of_cell = p.name.starts_with("rnn.");
        return best_network_->graph().parameter(of_cell ? "rnn1" + p.name.substr(3) : p.name).value;
    }
    void keep_best() {
        if (o_.save.empty()) return;
        for (const auto* p : network_.g.parameters()) std::copy_n(p->value, p->size(), of_best(*p));
        best_network_->save(o_.save, metadata());
    }
    /// Reads the best network into the one in training.
    void load_best() {
        const auto file = ig::io::Safetensors::open(o_.save);
        best_network_->load(file);
        for (auto* p : network_.g.parameters()) std::copy_n(of_best(*p), p->size(), p->value);
    }
    void load() {
        const auto file = ig::io::Safetensors::open(state());
        const auto at = file.metadata().find(settings_key);
        const std::string begun = at == file.metadata().end() ? "no settings of `lds_text rnn`" : at->second;
        if (without_test(begun) != without_test(settings()))
            throw ig::DataError(ig::message("--resume: '", state(), "' was begun with\n  ",
                                            without_test(begun), "\nand this call has\n  ",
                                            without_test(settings()),
                                            "\nGive the texts and options it was begun with"));
        if (!files::exists(o_.save))
            throw ig::FileError(ig::message("--resume: '", o_.save,
                                            "', the best network so far, is missing; restore it, ",
                                            "or start over with --overwrite"));
        load_best();
        retested_ = test_ && begun != settings();
        const double tested = retested_ ? perplexity(*test_) : 0;
        checkpoint_.load(file);
        if (!retested_) return;
        at_best_ = tested;
        retest(o_.log, best_epoch_, at_best_);
        save();
    }
    void row(std::uint64_t epoch, double trained, double validated, bool tested, double seconds) {
        log_->append(ig::message(epoch, ',', schedule_.rate, ',', trained > 0 ? ig::message(trained) : "",
                                 ',', validated, ',', tested ? ig::message(at_best_) : "", ',', seconds, ',',
                                 start_.vocabulary.size(), ',',
                                 ig::file::hex16(start_.vocabulary.checksum())));
    }
    /// The rest of an epoch and what follows it. False after a signal.
    bool run_epoch() {
        Stopwatch clock;
        for (const auto& part :
             train_.batches({o_.bptt, o_.batch}, {.start = static_cast<ig::Index>(batch_)})) {
            if (part.first) network_.g.reset();
            nats_ += network_.g.forward(network_.loss, {network_.x, part.input}, {network_.y, part.target});
            tokens_ += static_cast<double>(network_.g.result(network_.loss).predicted());
            if (!std::isfinite(nats_)) diverged();
            network_.g.backward(network_.loss);
            sgd_.step();
            batch_ = static_cast<std::uint64_t>(part.index) + 1;
            seconds_ += clock.lap();
            if (interrupt::wanted) return false;
            if (batch_ % static_cast<std::uint64_t>(o_.checkpoint_every) == 0) save();
        }
        const double trained = std::exp(nats_ / tokens_), now = perplexity(valid_);
        if (!std::isfinite(trained) || !std::isfinite(now)) diverged();
        const bool better = now < best_;
        if (better) {
            best_ = now;
            best_epoch_ = epoch_;
            if (test_) at_best_ = perplexity(*test_);
            keep_best();
        }
        const double seconds = seconds_ += clock.lap();
        say("epoch %td: rate %.4f, train %.2f, validation %.2f; %.1f s\n", std::ptrdiff_t(epoch_),
            schedule_.rate, trained, now, seconds);
        row(epoch_, trained, now, better && test_, seconds);
        schedule_.validated(now);
        sgd_.rate(schedule_.rate);
        ++epoch_;
        batch_ = 0, nats_ = tokens_ = seconds_ = 0;
        save();
        return interrupt::wanted == 0;
    }
    [[noreturn]] void diverged() const {
        throw ig::NumericError("rnn: the training diverges in epoch ", epoch_, " at rate ", schedule_.rate,
                               "; use a smaller --rate or --clip",
                               o_.save.empty() ? std::string()
                                               : ig::message(". The network of epoch ", best_epoch_,
                                                             ", the best so far, is in '", o_.save, "'"));
    }
    int interrupted() {
        save();
        interrupt::out() << "\nInterrupted at epoch " << epoch_ << ", batch " << batch_
                         << (o_.save.empty() ? "; nothing is kept without --save"
                                             : "; the training is in '" + state() +
                                                   "'. To continue: the same call with --resume")
                         << std::endl;
        return interrupt::status();
    }

    const RnnCommand& o_;
    Start start_;
    ig::text::Corpus train_, valid_;
    std::optional<ig::text::Corpus> test_;
    RecurrentModel network_;
    ig::Sgd<float> sgd_;
    Schedule schedule_;
    std::uint64_t epoch_ = 1, batch_ = 0, best_epoch_ = 0;
    double nats_ = 0, tokens_ = 0, seconds_ = 0, best_ = 0, at_best_ = 0;
    bool retested_ = false;  // the test text is another than before --resume
    std::string words_;
    ig::io::Checkpoint checkpoint_;
    std::optional<LanguageModel> best_network_;  // with --save
    std::optional<files::CsvLog> log_;
};

}  // namespace

int rnn(const RnnCommand& o) {
    program::use_threads("rnn", o.threads);
    ig::require("rnn", "--checkpoint-every", o.checkpoint_every, 1);
    ig::require("rnn", "--epochs", o.epochs, 0);
    ig::require("rnn", "--epsilon", o.epsilon, 0, 1);
    ig::require("rnn", "--decay", o.decay, ig::Exclusive{0}, 1);
    ig::require("rnn", "--init", o.init, ig::Exclusive{0});
    ig::require("rnn", "--rms", o.rms, ig::Exclusive{0});
    ig::require("rnn", "--gain", o.gain, 0);
    ig::require("rnn", "--power", o.power, 0, 1);
    if (o.save.empty() && o.resume)
        throw ig::UsageError("rnn: --resume continues from what --save has written; give both");
    if (o.resume && o.overwrite)
        throw ig::UsageError(
            "rnn: --resume continues a training and --overwrite begins it again; give one of them");
    std::optional<files::Lock> lock;
    if (!o.save.empty()) {
        files::Outputs().write_unmarked("--save", o.save, true).check();  // its folder, for the lock
        lock.emplace("--save", o.save);
    }
    files::Outputs outputs;
    outputs.read("--train", o.train)
        .read("--valid", o.valid)
        .read("--test", o.test)
        .read("--model", o.model)
        .read("--vocabulary-from", o.vocabulary_from)
        .write("--log", o.log, files::table("log of `lds_text rnn`", rnn_header));
    if (!o.save.empty())
        outputs.write("--save", o.save, network_kind())
            .write("--save", o.save + ".train", network_kind())
            .lock("--save", o.save);
    outputs.check();
    if (o.resume && files::exists(o.save) && !files::has_content(o.save + ".train"))
        throw ig::FileError(
            ig::message("rnn: --resume: '", o.save, "' exists, but no training in '", o.save,
                        ".train': one from the beginning would ",
                        "overwrite the network. Put the file beside it, or leave --resume out"));
    if (!o.save.empty() && !o.resume && !o.overwrite && files::has_content(o.save + ".train"))
        throw ig::FileError(ig::message("'", o.save,
                                        ".train' holds a training. Continue with --resume, or start over ",
                                        "with --overwrite"));
    interrupt::catch_signals();
    return RnnTraining(o, Start(o)).run();
}

}  // namespace lt
