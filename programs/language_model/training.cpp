/// @file training.cpp  See training.hpp.
#include "training.hpp"

#include <unistd.h>

#include <csignal>
#include <ctime>
#include <sstream>

#include "../shared/interrupt.hpp"

namespace lm {

namespace {

/// A name for a run: its start time and process.
std::string run_name() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    char stamp[32];
    std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
    return ig::message(stamp, "-", ::getpid());
}

/// Sets what holds for the whole process before anything is built.
const Options& with_settings(const Options& o) {
    ig::threads(o.threads);
    if (o.portable) ig::portable(true);
    return o;
}

// Random segments may be longer than their mean, up to this limit.
ig::Index most_steps(const Options& o) { return o.bptt + (o.random_bptt ? 15 : 0); }

ig::distributed::DataParallelOptions cut_of(const Options& o) {
    return {.columns = o.batch, .shards = o.shards};
}

}  // namespace

Training::Training(Ranks& ranks, const Options& options, const ig::io::Safetensors* from,
                   const StartValues& values)
    : ranks_(ranks),
      o_(with_settings(options)),
      texts_(find_texts(o_)),
      vocabulary_(make_vocabulary(from, values)),
      train_(read_train()),
      valid_(texts_.valid.read(vocabulary_)),
      g_({.time = most_steps(o_),
          .batch = ig::distributed::widest_shard(cut_of(o_)),
          .seed = o_.seed,
          .precision = o_.precision == "bf16" ? ig::Precision::bf16 : ig::Precision::full,
          .epsilon = o_.epsilon}),
      model_(build(g_, o_, vocabulary_.size())),
      parallel_(g_, g_.parameters(), ranks, cut_of(o_)),
      update_(g_, o_),
      schedule_(o_) {
    if (texts_.test) test_ = texts_.test->read(vocabulary_);
    state_.run = run_name();
    state_.vocabulary = vocabulary_.to_text();
    state_.train_checksum = train_.checksum();
    state_.valid_checksum = valid_.checksum();
    checkpoint_.model(g_).state("update", update_).state("schedule", schedule_);
    if (o_.keep_weights < 1) {
        drop_.emplace(g_.parameters(o_.cell == "qrnn" ? "qrnn*.W, qrnn*.V"
                                                      : o_.cell + (o_.cell == "rhn" ? "*.R*" : "*.U*")),
                      ig::WeightDropOptions{.keep = o_.keep_weights, .seed = o_.seed});
        checkpoint_.state("weight_drop", *drop_);
    }
    if (o_.shards > 1) checkpoint_.state("parallel", parallel_);
    checkpoint_.counter("epoch", state_.epoch).counter("batch", state_.batch).number("nats", state_.nats);
    checkpoint_.number("tokens", state_.tokens).number("seconds", state_.seconds).number("best", state_.best);
    checkpoint_.counter("best_epoch", state_.best_epoch)
        .text("run", state_.run)
        .text("vocabulary", state_.vocabulary);
    checkpoint_.counter("train_checksum", state_.train_checksum)
        .counter("valid_checksum", state_.valid_checksum);
    best_.model(g_).text("vocabulary", state_.vocabulary);
    checkpoint_.state("health", health_).number("cpu_seconds", state_.cpu_seconds);
    if (from) {
        checkpoint_.load(*from);
        require_same_texts();
    } else {
        start(values);
    }
    stepped_ = state_.epoch > 1 || state_.batch > 0;
    if (o_.subspace && ranks_.first()) subspace_.emplace(g_.parameter("E"), g_.parameter("softmax.W"));
    if (ranks_.first()) log_.emplace(o_.log, state_.run, static_cast<ig::Index>(state_.epoch) - 1);
    introduce();
}

// The initial parameters of a new training that are not random.
void Training::start(const StartValues& values) {
    if (!o_.start_from.empty())
        ig::io::Checkpoint().model(g_).load(ig::io::widened(ig::io::Safetensors::open(o_.start_from)),
                                            ig::io::Restore::parameters);
    if (values.system) start_as(*values.system, g_, o_);
    if (values.vectors) started_ = start_table(g_.parameter("E"), *values.vectors, vocabulary_, o_.vectors);
}

ig::text::Vocabulary Training::make_vocabulary(const ig::io::Safetensors* from,
                                               const StartValues& values) const {
    if (from) return stored_vocabulary(*from);
    if (values.system) {
        require_line_ends(values.system->vocabulary, "the vocabulary of " + o_.start);
        return values.system->vocabulary;
    }
    if (!o_.start_from.empty()) return stored_vocabulary(ig::io::Safetensors::open(o_.start_from));
    const bool words = o_.level == "word";
    if (!o_.vocabulary.empty()) {
        auto v = ig::text::Vocabulary::load(o_.vocabulary);
        if ((v.level() == ig::text::Level::word) != words)
            throw ig::DataError(ig::message("--vocabulary '", o_.vocabulary, "' is one of ",
                                            words ? "characters" : "words", ", but --level is ", o_.level));
        require_line_ends(v, "--vocabulary '" + o_.vocabulary + "'");
        return v;
    }
    return texts_.train.vocabulary({.level = words ? ig::text::Level::word : ig::text::Level::character,
                                    .min_count = *o_.min_count,
                                    .max_size = o_.max_vocabulary});
}

ig::text::Corpus Training::read_train() {
    auto corpus = texts_.train.read(vocabulary_);
    if (!o_.train_tokens.empty()) {
        const auto [first, last] = token_range(o_.train_tokens, corpus.size());
        texts_.train.name += ig::message(", tokens ", first, " to ", last, " of ", corpus.size());
        corpus = corpus.part(first, last, vocabulary_);
    }
    if (corpus.size() <= o_.batch)  // before a graph is built
        throw ig::DataError(texts_.train.name, ": found ", counted(corpus.size(), "token"),
                            ", expected more than the ", counted(o_.batch, "column"),
                            " of --batch; give a longer text or a lower --batch");
    return corpus;
}

void Training::require_same_texts() const {
    const auto require = [](const ig::text::Corpus& found, std::uint64_t expected, const Text& text) {
        if (found.checksum() != expected)
            throw ig::DataError(
                ig::message("--resume: ", text.name,
                            " is not the text that the training was begun with: its tokens have checksum ",
                            ig::file::hex16(found.checksum()), ", expected ", ig::file::hex16(expected)));
    };
    require(train_, state_.train_checksum, texts_.train);
    require(valid_, state_.valid_checksum, texts_.valid);
    if (state_.best_epoch > 0 && !files::has_content(o_.model))
        throw ig::FileError(ig::message(
            "--resume: '", o_.model,
            "', the best model so far, is missing or empty; restore it, or start over without --resume"));
}

void Training::introduce() {
    const auto& V = vocabulary_;
    std::ostringstream out;
    out << "train       " << describe(train_, texts_.train.name) << "\nvalidation  "
        << describe(valid_, texts_.valid.name);
    if (test_) out << "\ntest        " << describe(*test_, texts_.test->name);
    if (train_.unknowns() == 0 && valid_.unknowns() > 0)
        out << "\n            no <unk> in training: the model learns only to avoid it; --min-count 2 makes "
               "words seen once <unk>";
    const std::string& start = o_.start.empty() ? o_.start_from : o_.start;
    const std::string& source = start.empty() ? o_.vocabulary : start;
    out << "\nvocabulary  " << counted(V.size(), "type") << " (" << o_.level << "s, "
        << (source.empty() ? ig::message("min-count ", *o_.min_count) : "of '" + source + "'")
        << "), checksum " << ig::file::hex16(V.checksum()) << "\nunigram     validation perplexity "
        << fixed(unigram_perplexity(V, valid_), 2)
        << ", for comparison (counts of the vocabulary, one added to each)"
        << "\nmodel       " << layers_in_words(o_) << ", " << o_.head << " head"
        << (o_.head == "tied" && o_.head_bias ? " with a bias" : "") << ", loss " << o_.loss
        << (o_.loss == "ce" ? "" : ", target " + o_.target) << ", " << grouped(g_.parameters().elements())
        << " parameters" << (start.empty() ? "" : "\n            parameters to start with: '" + start + "'")
        << (started_.empty() ? "" : "\nvectors     " + started_)
        << (o_.freeze ? "\n            the word vectors stay as they start" : "") << "\ntraining    "
        << o_.update << ", rate " << *o_.rate << ", " << counted(o_.batch, "column") << " of " << o_.bptt
        << " steps, seed " << o_.seed << ", " << counted(o_.threads, "thread")
        << (ranks_.size() > 1 ? ig::message(" on each of ", ranks_.size(), " ranks") : "")
        << (o_.shards > 1 ? ", " + counted(o_.shards, "shard") + " a batch" : "")
        << (o_.shuffle == "partial" ? ", partially shuffled" : "")
        << (o_.precision == "bf16" ? ", products in bfloat16" : "") << (o_.portable ? ", portable" : "")
        << (drop_ ? ig::message(", ", o_.keep_weights, " of the recurrent weights kept") : "")
        << (o_.epsilon > 0 ? ig::message(", entries below ", o_.epsilon, " sampled") : "")
        << (o_.weight_decay == 0 || !update_.natural() ? ""
            : o_.head == "free"                        ? ", weight decay of the word vectors alone"
                                                       : ", no weight decay")
        << (subspace_ ? "\nsubspace    averaged distance of word vectors and softmax " +
                            fixed(subspace_->readings().back().distance, 4) +
                            (stepped_ ? " as resumed" : " at the start")
                      : "")
        << "\n            valid: perplexity of the validation text, every token predicted once, line "
           "ends and <unk>\n"
        << "            included, in " << counted(o_.batch, "column")
        << ", base e; train: of the epoch as it was trained, with dropout\n";
    std::cout << program::fitted(out.str()) << std::endl;
}

// If the loss is a mean over the steps, the rate compensates for the larger weight of short segments.
double Training::rate_of(const ig::text::Batch& batch, double done) const {
    const double share = o_.random_bptt && update_.takes_means()
                             ? static_cast<double>(batch.input.time) / static_cast<double>(o_.bptt)
                             : 1;
    return share * schedule_.rate(static_cast<ig::Index>(state_.epoch), done);
}

// Gradients of the loss on a segment, with weights dropped under --keep-weights.
Training::Sums Training::gradients(const ig::text::Batch& batch) {
    std::optional<ig::WeightDrop<float>::Dropped> dropped;
    if (drop_) dropped.emplace(*drop_);
    const auto pass = [&](const ig::text::Batch& part) {
        g_.forward(model_.loss, {model_.x, part.input}, {model_.y, part.target});
        g_.backward(model_.loss);
        if (update_.wants_modulus()) g_.backward<ig::Modulus>(model_.loss);
        return std::array{g_.result(model_.text).nats(), g_.result(model_.text).cross_entropy(),
                          static_cast<double>(g_.result(model_.text).predicted()),
                          interrupt::wanted ? 1. : 0.};
    };
    Natural* const natural = update_.natural();
    const auto sums = natural ? parallel_.gradients(batch, pass, natural->cells(), natural->head())
                              : parallel_.gradients(batch, pass);
    return {sums[0], sums[1], sums[2], sums[3] > 0};
}

// Nothing if a rank received a signal to end.
std::optional<ig::Perplexity> Training::perplexity(const ig::text::Corpus& corpus, const GoOn& go_on) {
    const auto found = measure(parallel_, model_, corpus, vocabulary_, o_.batch, o_.bptt, go_on);
    const bool all = parallel_.sum(std::array{found ? 0. : 1.})[0] == 0;
    return all ? found : std::nullopt;
}

// Throws NumericError if a parameter is not finite: such a model is neither saved nor evaluated.
void Training::require_finite() {
    for (const auto* p : g_.parameters())
        if (const auto bad = ig::kernel::first_non_finite(p->size(), p->value); bad != p->size())
            throw ig::NumericError(ig::message(
                "the weight '", p->name, "' is ", p->value[bad], " at row ", bad / p->cols, ", column ",
                bad % p->cols, "; expected finite numbers",
                stepped_ || o_.start_from.empty() ? ""
                                                  : " in '" + o_.start_from + "': start from another file"));
}

// The states of all ranks are gathered, then the first writes them.
void Training::save() {
    require_finite();
    parallel_.gather_states();
    if (ranks_.first()) checkpoint_.save(o_.model + ".train", metadata(to_json(o_)));
}

int Training::run(const OnEpoch& on_epoch) {
    interrupt::catch_signals();
    const auto epochs = static_cast<std::uint64_t>(o_.epochs);
    if (state_.epoch > 1 || state_.batch > 0)
        std::cout << "resume      at epoch " << state_.epoch << ", batch " << state_.batch << std::endl;
    if (state_.epoch > epochs)
        std::cout << "resume      " << counted(static_cast<ig::Index>(state_.epoch) - 1, "epoch")
                  << " are done and no more were requested"
                  << (o_.schedule == "one-cycle" ? "" : "; raise --epochs to continue") << std::endl;
    try {
        save();
        while (state_.epoch <= epochs && stop() == Stop::none)
            if (!run_epoch() || !finish_epoch(on_epoch)) return interrupted();
    } catch (const ig::NumericError& error) {
        if (!stepped_) throw;  // the start values are to blame
        return diverged(std::string(error.text()));
    }
    const Stop now = stop();
    // It may run away in the last epoch, too.
    const Stop why = state_.epoch <= epochs || now == Stop::runaway ? now : Stop::none;
    explain(why);
    if (state_.best_epoch == 0) {
        std::cout << '\n' << without_best() << std::endl;
        return 3;
    }
    const int status = finish_run();
    return status == 0 && why == Stop::runaway ? 3 : status;
}

bool Training::run_epoch() {
    const ig::text::BatchOptions cut{.time = o_.bptt,
                                     .random_length = o_.random_bptt,
                                     .rotate = o_.shuffle == "partial",
                                     .seed = o_.seed,
                                     .epoch = state_.epoch,
                                     .start = static_cast<ig::Index>(state_.batch)};
    auto batches = train_.batches({most_steps(o_), o_.batch}, cut);
    Progress progress(ig::message("epoch ", state_.epoch, "/", o_.epochs));
    Stopwatch watch;
    const CpuTime cpu;
    const double before = state_.seconds, cpu_before = state_.cpu_seconds,
                 hard = o_.loss == "mixture" ? 1 - *o_.beta : 1;
    for (const auto& batch : batches) {
        const Sums sums = gradients(batch);
        stepped_ = true;
        const auto done = (static_cast<double>(batch.index) + 0.5) / static_cast<double>(batches.count());
        const Step step = update_.step(rate_of(batch, done));

        health_.add(sums.loss - hard * sums.nats, sums.tokens, step);
        state_.nats += sums.nats;
        state_.tokens += sums.tokens;
        state_.batch = static_cast<std::uint64_t>(batch.index) + 1;
        state_.seconds = before + watch.seconds();
        state_.cpu_seconds = cpu_before + cpu.seconds();
        if (sums.interrupted) return false;
        if (state_.batch % static_cast<std::uint64_t>(o_.checkpoint_every) == 0) save();
        progress.update(batch.index + 1, batches.count(), [&] {
            const double speed = state_.tokens / state_.seconds;
            const double left = static_cast<double>(batches.count() - batch.index - 1) * state_.seconds /
                                static_cast<double>(state_.batch);
            return ig::message("train ", fixed(std::exp(state_.nats / state_.tokens), 2), ", ",
                               grouped(static_cast<ig::Index>(speed)), " tokens/s, ", clock_time(left),
                               " left");
        });
    }
    return true;
}

bool Training::finish_epoch(const OnEpoch& on_epoch) {
    const CpuTime cpu;
    std::optional<ig::Perplexity> valid;  // the lower one, where there are two averages
    const auto evaluate = [&] {
        require_finite();
        Progress progress("validation");
        const auto now = perplexity(valid_, [&](ig::Index done, ig::Index all) {
            progress.update(done, all, [] { return std::string(); });
            return interrupt::wanted == 0;
        });
        if (!now) return std::numeric_limits<double>::quiet_NaN();
        if (!valid || now->nats() <= valid->nats()) valid = now;
        return now->nats();
    };
    if (auto* tails = update_.tails()) {
        tails->observe(evaluate);
        if (interrupt::wanted != 0) return false;
    }
    update_.swap();
    if (!valid) evaluate();
    const bool better =
        valid && valid->nats() < state_.best && !is_hopeless(o_, valid->nats(), vocabulary_.size());
    if (better) {
        state_.best = valid->nats();
        state_.best_epoch = state_.epoch;
        if (ranks_.first()) best_.save(o_.model, metadata(to_json(o_, false)));
    }
    update_.swap();
    if (!valid) return false;

    const auto longest = longest_row(g_.parameter("E").values());
    const bool soft = o_.loss != "ce";
    const double reach = o_.temperature * std::log(static_cast<double>(vocabulary_.size()));
    const Row row{.epoch = static_cast<ig::Index>(state_.epoch),
                  .rate = schedule_.rate(static_cast<ig::Index>(state_.epoch), 1),
                  .train_tokens = static_cast<ig::Index>(state_.tokens),
                  .train_perplexity = std::exp(state_.nats / state_.tokens),
                  .valid_tokens = valid->tokens(),
                  .valid_perplexity = valid->value(),
                  .seconds = state_.seconds,
                  .cpu_seconds = state_.cpu_seconds + cpu.seconds(),
                  .soft_term = health_.soft_term(),
                  .gradient_norm = health_.mean_norm(),
                  .largest_gradient_norm = health_.largest,
                  .clipped_share = health_.clipped_share(),
                  .largest_row = longest.square,
                  .largest_row_word = vocabulary_.word(longest.word),
                  .tau_log_v = soft ? std::optional(reach) : std::nullopt,
                  .subspace = subspace_ ? std::optional(subspace_->read().distance) : std::nullopt};
    std::ostringstream out;
    out << "epoch " << row.epoch << "  train " << perplexity_in_words(row.train_perplexity) << "  valid "
        << perplexity_in_words(row.valid_perplexity) << (better ? "  (best)" : "") << "  "
        << grouped(static_cast<ig::Index>(state_.tokens / state_.seconds)) << " tokens/s  "
        << clock_time(row.seconds);
    if (o_.verbose)
        out << "\n        rate " << exact(row.rate) << "  gradient " << fixed(row.gradient_norm, 2)
            << ", at most " << fixed(row.largest_gradient_norm, 2) << ", "
            << fixed(100 * row.clipped_share, 0) << " % clipped  longest vector |e|^2 "
            << fixed(row.largest_row, 1) << " " << ig::in_quotes(row.largest_row_word)
            << (soft ? ", tau ln V " + fixed(reach, 1) + "  soft term " + fixed(row.soft_term, 4) +
                           " nats a token"
                     : "");
    if (row.subspace) out << "\n        subspace distance " << fixed(*row.subspace, 4);
    if (ranks_.size() > 1) {
        const double waited = parallel_.waited();
        out << "\n        ranks: " << fixed(waited - waited_, 2) << " s of waiting and sending";
        waited_ = waited;
    }
    std::cout << program::fitted(out.str()) << std::endl;
    if (log_) log_->append(row);
    schedule_.observe(valid->nats());
    update_.observe(valid->nats());
    health_.next(valid->nats());
    ++state_.epoch;
    state_.batch = 0;
    state_.nats = state_.tokens = state_.seconds = state_.cpu_seconds = 0;
    save();
    if (on_epoch) on_epoch(row);
    return true;
}

}  // namespace lm
