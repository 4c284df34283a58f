/// @file graph/store.hpp  What a graph holds: records behind the handles, and where their numbers are.
///
/// Part of the inside of Graph; nodes see it through Setup, Forward and Backward.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <isogloss/error.hpp>
#include <isogloss/graph/arena.hpp>
#include <isogloss/graph/handles.hpp>
#include <isogloss/linalg.hpp>
#include <isogloss/random.hpp>
#include <isogloss/utf8.hpp>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace isogloss {

/// A trained matrix with its gradient. The gradient buffer is a sum of raw per-token derivatives and is
/// in one of four conditions, so that nobody clears or reads more of it than needed:
///
///     empty        zero everywhere; the memory holds anything
///     rows         zero but for the rows listed in `touched`; other rows' memory holds anything
///     dense        every element counts
///     staged       written by a loss during a forward pass; counts once the
///                  backward pass of that loss commits it; the next forward pass discards it
template <class T> struct Parameter {
    enum class Condition { empty, rows, dense, staged };

    std::string name;
    Index rows = 0, cols = 0;
    T* value = nullptr;
    T* gradient = nullptr;
    bool unit_rows = false;  ///< every row is brought back to norm 1 after each update
    Condition condition = Condition::empty;
    int staged_by = -1;             ///< node that wrote a staged gradient
    std::vector<Index> touched;     ///< capacity `rows`, taken when the first lookup is declared
    std::vector<std::uint8_t> hit;  ///< by row: listed in `touched`
    Index lookups = 0, uses = 0;    ///< declared uses as a table read by rows, and all declared uses

    Index size() const { return rows * cols; }
    MatrixRef<T> values() const { return {value, rows, cols}; }

    /// The gradient as a whole matrix to add to, whatever its condition was.
    MatrixRef<T> dense_gradient() {
        switch (condition) {
            case Condition::dense:
                break;
            case Condition::rows:
                for (Index i = 0; i < rows; ++i)
                    if (!hit[static_cast<std::size_t>(i)]) std::fill_n(gradient + i * cols, cols, T(0));
                forget_rows();
                break;
            default:
                std::fill_n(gradient, size(), T(0));
        }
        condition = Condition::dense;
        return {gradient, rows, cols};
    }

    /// For a product that can overwrite: returns 0 where nothing counts yet, else 1, and makes it dense.
    T begin_product() {
        if (condition == Condition::empty || condition == Condition::staged) {
            condition = Condition::dense;
            return T(0);
        }
        dense_gradient();
        return T(1);
    }

    /// One row of the gradient to add to; marks it touched.
    T* gradient_row(Index i) {
        if (condition == Condition::staged) condition = Condition::empty;
        if (condition == Condition::empty) condition = Condition::rows;
        T* row = gradient + i * cols;
        if (condition == Condition::rows && !hit[static_cast<std::size_t>(i)]) {
            hit[static_cast<std::size_t>(i)] = 1;
            touched.push_back(i);
            std::fill_n(row, cols, T(0));
        }
        return row;
    }

    void clear_gradient() {
        forget_rows();
        condition = Condition::empty;
    }

private:
    void forget_rows() {
        for (const Index i : touched) hit[static_cast<std::size_t>(i)] = 0;
        touched.clear();
    }
};

namespace graph {

/// A sequence. `lead` = 1 where a block [B, width] for the state before the first step precedes the T
/// blocks; blocks follow one another at the batch size of the current pass, so that a whole sequence,
/// or a whole sequence one step back, is one matrix.
template <class T> struct SeqRecord {
    std::string name;
    Index width = 0;
    int lead = 0;
    int node = -1;         // producer; -1 for an input
    T* value = nullptr;    // [lead + T, B, width]
    T* carried = nullptr;  // [B, width]: where the next pass starts, or null
    T* adjoint[2] = {};    // gradient, modulus; same layout as value
    bool unset[2] = {};    // nothing added in this backward pass: memory holds anything
    int staged_by =
        -1;            // the node whose forward pass has left its part of the gradient in the adjoint, or -1
    bool fed = false;  // inputs: given in this pass
};

struct TokensRecord {
    std::string name;
    Index vocabulary = 0;
    bool read_by_node = false;  // a node reads it as input, so not_predicted is no valid value
    bool fed = false;
    Token* value = nullptr;  // [T, B]
};

template <class T> struct Source {
    enum class When { sequence, previous, current } when = When::sequence;
    int seq = -1, weight = -1, tokens = -1, mask = -1;
    Index width = 0;      // of the source
    T* masked = nullptr;  // [T, B, width], one gate's masked copy
    T* squared = nullptr;
    T* packed = nullptr;          // terms computed step by step: the matrix as kernel::Packed lays it out
    std::uint64_t packed_at = 0;  // the pass it was packed in
};

template <class T> struct UnitsRecord {
    std::string name;
    Index width = 0;
    int seq = -1, bias = -1, node = -1;
    std::vector<Source<T>> sources;
};

/// Recurrent units on a sparse graph (SparseRecurrent): unit j sums its inputs over the edges into it. A row of
/// transition weights holds `units` biases (edges from the always-on unit), then the edges by target.
struct EdgesRecord {
    std::string name;
    int node = -1;
    Index units = 0;
    std::vector<Index> first;  // [units + 1]: edges first[j] … first[j+1]-1 lead into unit j, the loop first
    std::vector<Index> from;   // [edges]: where they come from
    int activity = -1, potential = -1,
        started = -1;                    // sequences a, V, and 1 from the first step after a reset
    int tokens = -1;                     // what selects the row, -1: rows are sequences
    int tau = -1, rho = -1, start = -1;  // parameters; rho: biases by symbol where tau is one row for all
    Index edges() const { return static_cast<Index>(from.size()); }
};

template <class T> struct MaskRecord {
    std::string name;
    Index width = 0, groups = 1;
    double keep = 1;
    std::uint32_t stream = 0;
    bool active = false;  // drawn in this pass; otherwise the mask is all ones
    T* value = nullptr;   // [groups, B, width]
};

template <class T> struct LogitsRecord {
    std::string name;
    Index vocabulary = 0;
    int hidden = -1, table = -1, bias = -1, node = -1;
};

struct LossRecord {
    std::string name;
    int node = -1;
    double value = 0;
    double cross_entropy =
        std::numeric_limits<double>::quiet_NaN();  // the part a perplexity is made of, if any
    Index predicted = 0;                           // positions whose target counted
    double* by_token = nullptr;                    // [T, B], or null for a loss without one
    double upstream = 0;                           // d(asked loss) / d(this loss), 0 when it is not asked for
    std::vector<std::pair<int, double>> parts;     // of a weighted sum: other losses and their weights
};

/// A number that no other graph of the process has had, above 0.
inline std::uint64_t new_serial() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

template <class T> struct Store {
    const std::uint64_t serial =
        new_serial();  // what handles are known by: another graph may get the address
    Arena arena;
    Capacity capacity;
    std::uint64_t seed = 1, step = 0;
    std::uint64_t pass = 0;  // counts passes in either direction
    bool training = true;
    bool moduli = false;
    Index time = 0, batch = 0;  // of the current pass
    Index predicted = 0;        // positions that counted in the last loss carried backward
    Index columns = 0;          // batch columns of that pass, which a later forward pass does not change
    Index budget = 0;           // bytes a loss may take for its blocks of logits

    std::deque<Parameter<T>> parameters;
    std::deque<SeqRecord<T>> seqs;
    std::deque<TokensRecord> tokens;
    std::deque<UnitsRecord<T>> units;
    std::deque<EdgesRecord> edges;
    std::deque<MaskRecord<T>> masks;
    std::deque<LogitsRecord<T>> logits;
    std::deque<LossRecord> losses;
    std::vector<std::string> node_names;
    std::unordered_map<std::string, const char*> names;  // every name in use, and what it names
    std::vector<std::string> claimed;                    // the same in order

    Index rows() const { return time * batch; }
    Index capacity_rows() const { return capacity.time * capacity.batch; }

    template <class Deque> auto& at(Deque& records, int id) { return records[static_cast<std::size_t>(id)]; }

    // All that a file can hold, see safetensors_entries, and nothing that makes a message hard to read.
    static bool is_name(const std::string& name) {
        return !name.empty() && !bad_byte(name) && name != "__metadata__" &&
               std::none_of(name.begin(), name.end(), [](char c) {
                   return static_cast<unsigned char>(c) <= ' ' || c == 0x7F || c == '*' || c == '/';
               });
    }

    void claim(const std::string& name, const char* kind) {
        if (!is_name(name))
            throw UsageError(message(kind, " name ", in_quotes(name),
                                     ": a name is UTF-8 of at least one character, with no blank, control "
                                     "character, '*' or '/' in it, and not '__metadata__', so that files can "
                                     "hold it"));
        if (const auto known = names.find(name); known != names.end())
            throw UsageError(
                message(kind, " '", name, "': the name is already that of a ", known->second,
                        " in this graph. Names are unique; to share a parameter pass its handle again."));
        claimed.push_back(name);  // first, so that what is rolled back is never more than what was claimed
        names.emplace(name, kind);
    }

    /// Memory of the layout of a sequence.
    T* take_seq(const SeqRecord<T>& s) {
        return arena.template take<T>({s.lead + capacity.time, capacity.batch, s.width},
                                      message("sequence '", s.name, "'"));
    }

    int add_seq(const std::string& name, Index width, int lead, bool carried, int node) {
        if (width < 1)
            throw UsageError(message("sequence '", name, "': found width ", width, ", expected at least 1"));
        SeqRecord<T> r;
        r.name = name;
        r.width = width;
        r.lead = lead;
        r.node = node;
        r.value = take_seq(r);
        r.adjoint[0] = take_seq(r);
        if (moduli) r.adjoint[1] = take_seq(r);
        if (carried)
            r.carried = arena.template take<T>({capacity.batch, width}, message("sequence '", name, "'"));
        seqs.push_back(r);
        return static_cast<int>(seqs.size()) - 1;
    }

    /// Values of a sequence at step t of the current pass; t = -1 is the block before the first.
    T* value(int seq, Index t = 0) {
        auto& s = at(seqs, seq);
        return s.value + (s.lead + t) * batch * s.width;
    }

    /// Adjoint of a sequence at step t, zeroed if nothing was added to it in this pass.
    T* adjoint(int seq, int quantity, Index t = 0) {
        auto& s = at(seqs, seq);
        T* base = s.adjoint[quantity];
        if (s.unset[quantity]) {
            std::fill_n(base, (s.lead + time) * batch * s.width, T(0));
            s.unset[quantity] = false;
        }
        return base + (s.lead + t) * batch * s.width;
    }

    /// For a product that can overwrite the whole sequence's adjoint: 0 if nothing was added yet, else 1.
    T begin_adjoint(int seq, int quantity) {
        auto& s = at(seqs, seq);
        if (!s.unset[quantity]) return T(1);
        std::fill_n(s.adjoint[quantity], s.lead * batch * s.width, T(0));
        s.unset[quantity] = false;
        return T(0);
    }
};

}  // namespace graph
}  // namespace isogloss
