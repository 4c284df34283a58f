/// @file graph/store.hpp  What a graph holds: records behind the handles, and where their numbers are.
///
/// Internal to Graph; nodes see it through Setup, Forward and Backward.
#pragma once

#include <algorithm>
#include <any>
#include <atomic>
#include <deque>
#include <isogloss/error.hpp>
#include <isogloss/graph/affine.hpp>
#include <isogloss/graph/arena.hpp>
#include <isogloss/graph/handles.hpp>
#include <isogloss/graph/parameters.hpp>
#include <isogloss/graph/shared_weights.hpp>
#include <isogloss/random.hpp>
#include <isogloss/utf8.hpp>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace graph {

/// A sequence. `lead` = 1 where it is carried: a block [B, width] for the state before the first step precedes the T
/// blocks. Blocks follow one another at the batch size of the current pass, so that a whole sequence,
/// or a whole sequence one step back, is one matrix.
template <class T> struct SeqRecord {
    std::string name;
    Index width = 0;
    int lead = 0;
    int node = -1;          // producer; -1 for an input
    T* value = nullptr;     // [lead + T, B, width]
    T* carried = nullptr;   // [B, width]: initial state of the next pass, or null
    T* adjoint[2] = {};     // gradient, modulus; same layout as value
    bool unset[2] = {};     // nothing added in this backward pass: memory undefined
    int staged_by = -1;     // node whose forward pass has staged its gradient in the adjoint, or -1
    bool fed = false;       // inputs: given in this pass
    bool internal = false;  // no other node may take it as input, see Setup::open
};

struct TokensRecord {
    std::string name;
    Index vocabulary = 0;
    bool read_by_node = false;  // a node reads it as input, so not_predicted is not a valid value
    bool fed = false;
    Token* value = nullptr;  // [T, B]
};

/// What a node publishes beyond the graph's own records, as a record of its own type.
struct Published {
    int node = -1;
    std::any record;
};

template <class T> struct MaskRecord {
    std::string name;
    int node = -1;
    Index width = 0, groups = 1;
    double keep = 1;
    std::uint32_t stream = 0;
    bool active = false;  // drawn in this pass; otherwise the mask is all ones
    T* value = nullptr;   // [groups, B, width]
};

template <class T> struct LogitsRecord {
    std::string name;
    Index vocabulary = 0;
    Seq<T> hidden;
    Weight<T> table, bias;  // no bias: an empty handle
    int node = -1;
};

struct LossRecord {
    std::string name;
    int node = -1;
    double value = 0;
    double cross_entropy =
        std::numeric_limits<double>::quiet_NaN();  // the part that perplexity is based on, if any
    Index predicted = 0;                           // positions whose target counted
    double* by_token = nullptr;                    // [T, B], or null for a loss without one
    double upstream = 0;  // d(requested loss) / d(this loss), 0 if it has no part in it
    std::vector<std::pair<int, double>> parts = {};  // of a weighted sum: other losses and their weights
};

/// A serial number above 0, unique among all graphs of the process.
inline std::uint64_t new_serial() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

/// Records in order of creation, which never move; indexed by signed numbers, as in handles.
template <class R> class Records : public std::deque<R> {
public:
    template <class I> R& operator[](I i) { return std::deque<R>::operator[](static_cast<std::size_t>(i)); }
    template <class I> const R& operator[](I i) const {
        return std::deque<R>::operator[](static_cast<std::size_t>(i));
    }
    int count() const { return static_cast<int>(this->size()); }

    /// What is added from here on is that of a node, the last one, or of none.
    void begin_node(int node) {
        firsts_.resize(static_cast<std::size_t>(node));  // without those of nodes that were taken back
        firsts_.push_back(count());
    }
    /// Calls f for the records that a node has made.
    template <class F> void of_node(int node, F&& f) { each(*this, node, f); }
    template <class F> void of_node(int node, F&& f) const { each(*this, node, f); }

private:
    template <class Self, class F> static void each(Self& self, int node, F& f) {
        const auto next = static_cast<std::size_t>(node) + 1;
        const int last = next < self.firsts_.size() ? self.firsts_[next] : self.count();
        for (int i = self.firsts_[next - 1]; i < last; ++i)
            if (self[i].node == node) f(self[i]);
    }

    std::vector<int> firsts_;  // where those of each node begin
};

/// Held by a shared pointer: groups of parameters keep it alive.
template <class T> struct Store : std::enable_shared_from_this<Store<T>> {
    // Defined outside the class, so that the compiled core contains them.
    Store();
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    const std::uint64_t serial =
        new_serial();  // identifies the graph in handles: another graph may reuse the address
    // Outlives the graph if others are on its weights.
    const std::shared_ptr<Arena> memory = std::make_shared<Arena>();
    Arena& arena = *memory;
    std::optional<SharedWeights<T>> shared;  // the weights of another graph, if this one has none of its own
    Capacity capacity;
    std::uint64_t seed = 1, step = 0;
    std::uint64_t pass = 0;  // counts passes in either direction
    // The number of the last forward pass, and of the ones whose gradients and moduli the adjoints hold; 0: none.
    std::uint64_t forward_pass = 0, carried_back[2] = {};
    // The node above which the last backward pass of each quantity ended; -1: none.
    int stopped_at[2] = {-1, -1};
    bool training = true;
    bool gradients =
        true;  // whether there is memory for them and for adjoints; without, training stays false
    Precision precision = Precision::full;  // of products in training: full or bf16
    double epsilon = 0;                     // below which entries of dl/dz are sampled in training, 0: none
    bool exact = false;                     // in this pass neither rounding nor sampling
    bool moduli = false;
    Index time = 0, batch = 0;                // of the current pass
    std::optional<Index> budget;              // bytes a loss may take for its blocks of logits
    Index first_column = 0, all_columns = 0;  // a pass is the part from here of so many; 0: a whole batch

    Records<Parameter<T>> parameters;
    Records<SeqRecord<T>> seqs;
    Records<TokensRecord> tokens;
    Records<UnitsRecord<T>> units;
    Records<Published> published;
    Records<MaskRecord<T>> masks;
    Records<LogitsRecord<T>> logits;
    Records<LossRecord> losses;
    Array<std::string> node_names;
    std::unordered_map<std::string, const char*> names;  // every name in use, and what it names
    std::vector<std::string> claimed;                    // the same in order

    Index rows() const { return time * batch; }
    /// Whether a quantity was carried backward after the last forward pass: adjoints and values belong together.
    bool carried(int quantity) const { return forward_pass > 0 && carried_back[quantity] == forward_pass; }
    /// Columns of the batch of which the current pass may be a part, and row r of the pass as a row of that batch:
    /// random numbers are indexed by these, so that a part draws what the whole would.
    Index columns_in_batch() const { return all_columns > 0 ? all_columns : batch; }
    Index row_in_batch(Index r) const { return r / batch * columns_in_batch() + first_column + r % batch; }
    /// The precision of the products of the current pass.
    Precision products() const { return training && !exact ? precision : Precision::full; }
    /// The threshold below which entries are sampled in the current pass.
    double sampled_below() const { return training && !exact ? epsilon : 0; }
    Index capacity_rows() const { return capacity.time * capacity.batch; }

    /// The record behind a handle.
    Parameter<T>& operator[](Weight<T> w) { return parameters[w.id]; }
    SeqRecord<T>& operator[](Seq<T> a) { return seqs[a.id]; }
    TokensRecord& operator[](Tokens x) { return tokens[x.id]; }
    UnitsRecord<T>& operator[](Units<T> z) { return units[z.id]; }
    MaskRecord<T>& operator[](Mask m) { return masks[m.id]; }
    LogitsRecord<T>& operator[](Logits<T> o) { return logits[o.id]; }
    LossRecord& operator[](Loss<T> l) { return losses[l.id]; }

    /// Throws UsageError, beginning with `who`, unless a handle is one of this graph's.
    template <class H> void require_own(const H& h, std::string_view who = {}) const {
        if (h.id >= 0 && h.graph == serial) return;
        throw UsageError(who, who.empty() ? "" : ": ", "the ", H::kind, " handle ",
                         h.id < 0 ? "is empty" : "belongs to another graph");
    }

    /// What nodes have published as records of type R, in order of creation.
    template <class R> std::vector<const R*> all() const {
        std::vector<const R*> found;
        each<R>([&](const R& record) { found.push_back(&record); });
        return found;
    }
    /// Calls f for each of them.
    template <class R, class F> void each(F&& f) const {
        for (const auto& p : published)
            if (const R* record = std::any_cast<R>(&p.record)) f(*record);
    }

    // Whatever a file can hold, see safetensors_entries, except what makes a message hard to read.
    static bool is_name(const std::string& name) {
        return !name.empty() && !bad_byte(name) && name != "__metadata__" &&
               std::none_of(name.begin(), name.end(), [](char c) {
                   return static_cast<unsigned char>(c) <= ' ' || c == 0x7F || c == '*' || c == '/';
               });
    }

    void claim(const std::string& name, const char* kind) {
        if (!is_name(name))
            throw UsageError(kind, " name ", in_quotes(name),
                             ": expected UTF-8 that a file can hold as a name, ",
                             "without blanks, control characters, '*' and '/'");
        if (const auto known = names.find(name); known != names.end())
            throw UsageError(kind, " '", name, "': the name is that of a ", known->second,
                             " already; to share a parameter pass its handle again");
        claimed.push_back(name);  // first, so that what is rolled back is never more than what was claimed
        names.emplace(name, kind);
    }

    /// Memory in the layout of a sequence.
    T* take_seq(const SeqRecord<T>& s) {
        return arena.template take<T>({s.lead + capacity.time, capacity.batch, s.width},
                                      message("sequence '", s.name, "'"));
    }

    int add_seq(const std::string& name, Index width, bool carried, int node) {
        require(message("sequence '", name, "'"), "width", width, 1);
        SeqRecord<T> r{.name = name, .width = width, .lead = carried ? 1 : 0, .node = node};
        r.value = take_seq(r);
        if (gradients) r.adjoint[0] = take_seq(r);
        if (moduli) r.adjoint[1] = take_seq(r);
        if (carried)
            r.carried = arena.template take<T>({capacity.batch, width}, message("sequence '", name, "'"));
        seqs.push_back(r);
        return seqs.count() - 1;
    }

    /// Values of a sequence at step t of the current pass; t = -1 is the block before the first.
    T* value(int seq, Index t = 0) {
        auto& s = seqs[seq];
        return s.value + (s.lead + t) * batch * s.width;
    }

    /// Adjoint of a sequence at step t, zeroed if nothing was added to it in this pass.
    T* adjoint(int seq, int quantity, Index t = 0) {
        auto& s = seqs[seq];
        T* base = s.adjoint[quantity];
        if (s.unset[quantity]) {
            std::fill_n(base, (s.lead + time) * batch * s.width, T(0));
            s.unset[quantity] = false;
        }
        return base + (s.lead + t) * batch * s.width;
    }

    /// For a product that can overwrite the whole sequence's adjoint: beta, 0 if nothing was added yet, else 1.
    T begin_adjoint(int seq, int quantity) {
        auto& s = seqs[seq];
        if (!s.unset[quantity]) return T(1);
        std::fill_n(s.adjoint[quantity], s.lead * batch * s.width, T(0));
        s.unset[quantity] = false;
        return T(0);
    }
};
template <class T> Store<T>::Store() = default;
template <class T> Store<T>::~Store() = default;

}  // namespace graph
}}  // namespace isogloss
