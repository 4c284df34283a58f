/// @file compare.cpp  Where the predictions of two models differ.
#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <isogloss/io/atomic_file.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "model_file.hpp"
#include "print.hpp"
#include "progress.hpp"
#include "texts.hpp"

namespace lm {

namespace {

using Row = std::span<const float>;

/// The k words nearest to each word by the angle of their vectors, <unk> and line ends left out: [V, k].
std::vector<ig::Token> neighbour_lists(LoadedModel& it, const std::vector<bool>& wanted, ig::Index k) {
    const auto E = it.g->parameter("E").values();
    std::vector<float> unit(static_cast<std::size_t>(E.rows * E.cols));
    for (ig::Index v = 0; v < E.rows; ++v) {
        const double norm = std::sqrt(ig::kernel::sum_of_squares(E.cols, E.row(v)));
        for (ig::Index i = 0; i < E.cols; ++i)
            unit[std::size_t(v * E.cols + i)] = norm > 0 ? static_cast<float>(E.row(v)[i] / norm) : 0.0f;
    }
    std::vector<ig::Token> lists(static_cast<std::size_t>(E.rows * k), 0), order;
    std::vector<float> cosines(static_cast<std::size_t>(64 * E.rows));
    const ig::MatrixRef<const float> table(unit.data(), E.rows, E.cols);
    for (ig::Index first = 0; first < E.rows; first += 64) {
        const ig::Index some = std::min<ig::Index>(64, E.rows - first);
        ig::gemm<float>(1.f, {unit.data() + first * E.cols, some, E.cols}, ig::t(table), 0.f,
                        {cosines.data(), some, E.rows});
        for (ig::Index r = 0; r < some; ++r) {
            if (!wanted[std::size_t(first + r)]) continue;
            const float* row = cosines.data() + r * E.rows;
            order.clear();
            for (ig::Token v = 0; v < E.rows; ++v)
                if (v != first + r && !(it.vocabulary.has_unk() && v == it.vocabulary.unk()) &&
                    !(it.vocabulary.has_eos() && v == it.vocabulary.eos()))
                    order.push_back(v);
            std::partial_sort(order.begin(), order.begin() + k, order.end(), [row](ig::Token a, ig::Token b) {
                return row[a] != row[b] ? row[a] > row[b] : a < b;
            });
            std::copy_n(order.begin(), k, lists.begin() + (first + r) * k);
        }
    }
    return lists;
}

/// Three digits of a number of any size.
std::string rounded(double x) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, x, std::chars_format::general, 3).ptr};
}

/// What is added up over positions, for each model.
struct Mean {
    std::array<double, 2> sum = {};
    ig::Index count = 0, second_higher = 0;

    void add(double a, double b) {
        sum[0] += a;
        sum[1] += b;
        ++count;
        second_higher += b > a;
    }
    double of(std::size_t k) const { return count ? sum[k] / static_cast<double>(count) : 0; }
};

/// A position that is shown: its context, and the likeliest words under each model.
struct Shown {
    double gain = 0;  ///< ln p(target) of the second model less that of the first
    ig::Index at = 0;
    std::array<std::vector<std::pair<ig::Token, float>>, 2> likeliest;
};

std::vector<std::pair<ig::Token, float>> likeliest(Row p, ig::Index k) {
    std::vector<std::pair<ig::Token, float>> all;
    for (std::size_t v = 0; v < p.size(); ++v) all.emplace_back(static_cast<ig::Token>(v), p[v]);
    std::partial_sort(all.begin(), all.begin() + k, all.end(), [](const auto& a, const auto& b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    all.resize(static_cast<std::size_t>(k));
    return all;
}

/// Goes over the text with both models at once.
class Comparison {
public:
    explicit Comparison(const CompareOptions& o)
        : o_(o), models_{load_model(o.model, o.columns), load_model(o.against, o.columns)} {
        const auto &a = models_[0].vocabulary, &b = models_[1].vocabulary;
        if (a.checksum() != b.checksum())
            throw ig::DataError(ig::text("compare: the models have different vocabularies, ",
                                         ig::hex16(a.checksum()), " of ", a.size(), " types and ",
                                         ig::hex16(b.checksum()), " of ", b.size(),
                                         "; train both on the same text with the same options"));
        const ig::Index V = a.size(), special = a.has_unk() + a.has_eos();
        for (const auto& [name, value] :
             {std::pair("--neighbours", o.neighbours), std::pair("--frequent", o.frequent),
              std::pair("--likeliest", o.likeliest)})
            if (value < 1 || value > V - special - 1)
                throw ig::GraphError(ig::text(name, " is ", value, ", expected 1 to ", V - special - 1));
        if (o.show < 0 || o.context < 1)
            throw ig::GraphError("--show: expected at least 0; --context: at least 1");
        for (ig::Token v = 0; v < V && std::ssize(frequent_) < o.frequent; ++v)  // in order of their counts
            if (!is_special(v)) frequent_.push_back(v);
        is_frequent_.resize(static_cast<std::size_t>(V));
        for (const ig::Token v : frequent_) is_frequent_[std::size_t(v)] = true;
        for (const auto& word : o.words) {
            const auto token = a.find(word);
            if (!token)
                throw ig::DataError(ig::text(ig::in_quotes(word), " is not among the ", grouped(V),
                                             " types of the models; check its spelling and case"));
            words_.emplace_back(*token, Mean{});
        }
    }

    const ig::Vocabulary& vocabulary() const { return models_[0].vocabulary; }

    void run(const ig::Corpus& corpus) {
        tokens_ = corpus.tokens();
        const auto& vocabulary = models_[0].vocabulary;
        std::vector<bool> wanted(static_cast<std::size_t>(vocabulary.size()));
        for (const ig::Token v : tokens_) wanted[std::size_t(v)] = true;
        for (std::size_t k = 0; k < 2; ++k) lists_[k] = neighbour_lists(models_[k], wanted, o_.neighbours);

        const ig::Index T = std::min(models_[0].g->capacity().time, models_[1].g->capacity().time),
                        V = vocabulary.size();
        auto batches =
            corpus.batches({T, o_.columns}, {.tail = ig::Tail::pad, .predict_first = vocabulary.eos()});
        std::array<std::vector<float>, 2> p;
        for (auto& block : p) block.resize(static_cast<std::size_t>(64 * V));
        Progress progress("comparison");
        for (const auto& batch : batches) {
            for (auto& it : models_) {
                if (batch.first) it.g->reset();
                it.g->forward(it.model.nll, {it.model.x, batch.input}, {it.model.y, batch.target});
            }
            for (ig::Index first = 0; first < batch.target.size(); first += 64) {
                const ig::Index some = std::min<ig::Index>(64, batch.target.size() - first);
                for (std::size_t k = 0; k < 2; ++k)
                    models_[k].g->probabilities(models_[k].model.o, first, {p[k].data(), some, V});
                for (ig::Index r = 0; r < some; ++r) {
                    if (batch.target.data[first + r] == ig::not_predicted) continue;
                    const ig::Index t = (first + r) / o_.columns, b = (first + r) % o_.columns;
                    const auto row = [&](std::size_t k) {
                        return Row(p[k]).subspan(static_cast<std::size_t>(r * V),
                                                 static_cast<std::size_t>(V));
                    };
                    // Not the logarithm of a probability in float, which may have become 0.
                    const auto log_p = [&](std::size_t k) {
                        return -models_[k].g->by_token(models_[k].model.nll)(std::size_t(t), std::size_t(b));
                    };
                    position(b * batches.length() + batch.index * T + t, row(0), row(1), log_p(0), log_p(1));
                }
            }
            progress.update(batch.index + 1, batches.count(), [] { return std::string(); });
        }
        progress.clear();
        std::sort(rows_.begin(), rows_.end(), [](const Written& a, const Written& b) { return a.at < b.at; });
    }

    void print() const {
        const auto line = [](const std::string& name, const Mean& m) {
            std::cout << std::left << std::setw(46) << name << std::right;
            if (m.count == 0) {
                std::cout << "  there are no such positions\n";
                return;
            }
            const double ratio = m.of(1) / m.of(0);
            std::cout << std::setw(9) << fixed(m.of(0), 4) << std::setw(9) << fixed(m.of(1), 4)
                      << std::setw(9) << (ratio > 1e-3 && ratio < 1e3 ? fixed(ratio, 3) : rounded(ratio))
                      << std::setw(9) << fixed(100 * double(m.second_higher) / double(m.count), 1) << " %"
                      << std::setw(10) << grouped(m.count) << '\n';
        };
        std::cout << "first       " << o_.model << "  perplexity " << fixed(std::exp(-log_p_.of(0)), 2)
                  << "\nsecond      " << o_.against << "  perplexity " << fixed(std::exp(-log_p_.of(1)), 2)
                  << "\n\n"
                  << std::left << std::setw(46) << "mean probability of" << std::right << std::setw(9)
                  << "first" << std::setw(9) << "second" << std::setw(9) << "ratio" << std::setw(11)
                  << "2nd more" << std::setw(10) << "positions" << '\n';
        const std::string nearest = ig::text("its ", o_.neighbours, " nearest words in the table of the ");
        line("the target", target_);
        line(nearest + "first", neighbours_[0]);
        line(nearest + "second", neighbours_[1]);
        line("<unk>, where it is not the target", unknown_);
        line(ig::text("the ", o_.frequent, " most frequent, where none is the target"), of_frequent_);
        for (const auto& [token, mean] : words_)
            line("'" + word(token) + "', where it is not the target", mean);
        for (const bool gains : {true, false}) {
            const auto& list = gains ? gains_ : losses_;
            if (list.empty()) continue;
            std::cout << "\nwhere the second model gives the target most " << (gains ? "more" : "less")
                      << " probability, as a ratio\n";
            for (const Shown& s : list) {
                std::cout << "\n  ";
                for (ig::Index i = std::max<ig::Index>(0, s.at - o_.context); i < s.at; ++i)
                    std::cout << word(tokens_[std::size_t(i)]) << ' ';
                std::cout << "-> " << word(tokens_[std::size_t(s.at)]) << "  (x "
                          << fixed(std::exp(s.gain), 2) << ")\n";
                for (std::size_t k = 0; k < 2; ++k) {
                    std::cout << (k == 0 ? "    first  " : "    second ");
                    for (const auto& [token, p] : s.likeliest[k])
                        std::cout << ' ' << word(token) << ' ' << fixed(p, 2);
                    std::cout << '\n';
                }
            }
        }
    }

    /// A row for each position: its target and what stands in the means.
    void write(const std::string& path) const {
        ig::write_atomically(path, [&](ig::AtomicFile& out) {
            out.write(
                "position,target,log_p_first,log_p_second,unk_first,unk_second,neighbours_first,"
                "neighbours_second,frequent_first,frequent_second\n");
            for (const auto& row : rows_) {
                std::string target = word(tokens_[std::size_t(row.at)]);
                for (std::size_t i = 0; (i = target.find('"', i)) != std::string::npos; i += 2)
                    target.insert(i, "\"");
                std::string line = ig::text(row.at, ",\"", target, '"');
                for (const double v : row.values) line.append(1, ',').append(exact(v));
                out.write(line.append(1, '\n'));
            }
        });
    }

private:
    struct Written {
        ig::Index at;
        std::array<double, 8> values;
    };

    bool is_unk(ig::Token v) const {
        return models_[0].vocabulary.has_unk() && v == models_[0].vocabulary.unk();
    }
    bool is_special(ig::Token v) const {
        return is_unk(v) || (models_[0].vocabulary.has_eos() && v == models_[0].vocabulary.eos());
    }
    std::string word(ig::Token v) const { return ig::escaped(models_[0].vocabulary.word(v), false); }

    void position(ig::Index at, Row a, Row b, double la, double lb) {
        const ig::Token target = tokens_[std::size_t(at)];
        const auto y = static_cast<std::size_t>(target);
        const auto sum = [](Row p, std::span<const ig::Token> words) {
            double total = 0;
            for (const ig::Token v : words) total += double(p[std::size_t(v)]);
            return total;
        };
        log_p_.add(la, lb);
        target_.add(double(a[y]), double(b[y]));
        Written row{at, {la, lb, 0, 0, 0, 0, 0, 0}};
        if (models_[0].vocabulary.has_unk()) {
            const auto u = static_cast<std::size_t>(models_[0].vocabulary.unk());
            row.values[2] = double(a[u]);
            row.values[3] = double(b[u]);
            if (!is_unk(target)) unknown_.add(row.values[2], row.values[3]);
        }
        if (!is_special(target)) {
            for (std::size_t k = 0; k < 2; ++k) {
                const auto list = std::span(lists_[k]).subspan(y * std::size_t(o_.neighbours),
                                                               static_cast<std::size_t>(o_.neighbours));
                neighbours_[k].add(sum(a, list), sum(b, list));
                if (k == 1) row.values[4] = sum(a, list), row.values[5] = sum(b, list);
            }
            show(gains_, {lb - la, at, {}}, a, b, [](double x, double than) { return x > than; });
            show(losses_, {lb - la, at, {}}, a, b, [](double x, double than) { return x < than; });
        }
        row.values[6] = sum(a, frequent_);
        row.values[7] = sum(b, frequent_);
        if (!is_frequent_[y]) of_frequent_.add(row.values[6], row.values[7]);
        for (auto& [token, mean] : words_)
            if (token != target) mean.add(double(a[std::size_t(token)]), double(b[std::size_t(token)]));
        if (!o_.csv.empty()) rows_.push_back(row);
    }

    /// Keeps the `show` most telling positions in order; of a word, only its most telling one.
    template <class Better> void show(std::vector<Shown>& list, Shown s, Row a, Row b, Better better) const {
        const auto same = std::find_if(list.begin(), list.end(), [&](const Shown& x) {
            return tokens_[std::size_t(x.at)] == tokens_[std::size_t(s.at)];
        });
        if (same != list.end()) {
            if (!better(s.gain, same->gain)) return;
            list.erase(same);
        }
        const auto place =
            std::find_if(list.begin(), list.end(), [&](const Shown& x) { return better(s.gain, x.gain); });
        if (place - list.begin() >= o_.show) return;
        s.likeliest = {likeliest(a, o_.likeliest), likeliest(b, o_.likeliest)};
        list.insert(place, std::move(s));
        if (std::ssize(list) > o_.show) list.pop_back();
    }

    const CompareOptions& o_;
    std::array<LoadedModel, 2> models_;
    std::array<std::vector<ig::Token>, 2> lists_;
    std::vector<ig::Token> frequent_;
    std::vector<bool> is_frequent_;
    std::span<const ig::Token> tokens_;
    Mean log_p_, target_, unknown_, of_frequent_;
    std::array<Mean, 2> neighbours_;
    std::vector<std::pair<ig::Token, Mean>> words_;
    std::vector<Shown> gains_, losses_;
    std::vector<Written> rows_;
};

}  // namespace

int compare(const CompareOptions& o) {
    ig::threads(o.threads);
    Comparison comparison(o);
    const auto corpus = ig::Corpus::read(o.text, comparison.vocabulary());
    std::cout << "text        " << describe(corpus, o.text) << std::endl;
    comparison.run(corpus);
    comparison.print();
    if (!o.csv.empty()) comparison.write(o.csv);
    return 0;
}

}  // namespace lm
