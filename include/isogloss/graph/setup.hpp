/// @file graph/setup.hpp  What a node may ask for while the graph is built.
#pragma once

#include <cmath>
#include <initializer_list>
#include <isogloss/graph/init.hpp>
#include <isogloss/graph/store.hpp>
#include <isogloss/kernel/packed.hpp>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace graph {

template <class T> Weight<T> add_weight(Store<T>& store, const std::string& name, Index rows, Index cols,
                                        const Init& init, bool trained = true) {
    store.claim(name, "weight");
    const std::string who = message("weight '", name, "'");
    require(who, "rows", rows, 1);
    require(who, "cols", cols, 1);
    Parameter<T> p{.name = name, .rows = rows, .cols = cols, .trained = trained};
    if (store.shared) {
        const Parameter<T>& known = store.shared->at(name, rows, cols);
        p.value = known.value;
        p.packed = known.packed, p.packed_transpose = known.packed_transpose;
        p.loan = known.loan;
    } else {
        if (!init) throw UsageError(who, ": found no initial values, expected some, as uniform(0.1)");
        p.value = store.arena.template take<T>({rows, cols}, who);
        const Random random(store.seed, stream_of(name));
        for (Index i = 0; i < rows; ++i)
            for (Index j = 0; j < cols; ++j) {
                const double value = init(random, rows, cols, i, j);
                constexpr double most = std::numeric_limits<T>::max();
                require(who, "an initial value", value, -most, most);
                p.value[i * cols + j] = static_cast<T>(value);
            }
    }
    if (store.gradients && trained) p.gradient = store.arena.template take<T>({rows, cols}, who);
    store.parameters.push_back(std::move(p));
    return {store.parameters.count() - 1, rows, cols, store.serial};
}

}  // namespace graph

template <class T> class Setup;

/// Builds one declaration of units: `s.units("z", n).from("W", x).from("U", s.previous(h)).bias("b")`.
///
/// Each `from` adds a term a W with W [width of a, n] under the node's name; a preceding `init` sets the
/// initial values of W. Variants of a term:
/// - `from(W, a)` with a handle: the parameter is shared, with `s.transposed(W)` its transpose is the matrix;
/// - `from("W", a, mask)`: the input is multiplied by a dropout mask first; a mask of several groups
///   gives each equal block of columns of z (each gate) its own;
/// - `from("W", a, x)` with tokens x: W is a stack of matrices, one per symbol, [V · width of a, n], and
///   each position uses the matrix of its symbol x_t.
template <class T> class UnitsBuilder {
public:
    UnitsBuilder(Setup<T>& setup, const std::string& name, Index width);

    /// Initial values of the weights declared after this call (default uniform(0.1)).
    UnitsBuilder& init(Init init) {
        init_ = std::move(init);
        return *this;
    }

    /// Adds a term. `a` is Seq or Shifted (all steps in one product), Previous or Current (step by step); `w` is
    /// a local name for a new weight or the handle of a shared one.
    template <class W, class A> UnitsBuilder& from(const W& w, const A& a) {
        return term(w, a, Tokens{}, Mask{});
    }
    template <class W, class A> UnitsBuilder& from(const W& w, const A& a, Mask mask) {
        return term(w, a, Tokens{}, mask);
    }
    template <class W, class A> UnitsBuilder& from(const W& w, const A& a, Tokens x);

    /// Adds b [1, n] to every position; initially 0 unless `init` is given.
    UnitsBuilder& bias(const std::string& name, const Init& init = constant(0));

    operator Units<T>() const { return units_; }

private:
    using When = typename graph::Source<T>::When;
    static When when(Seq<T>) { return When::sequence; }
    static When when(graph::Shifted<T>) { return When::shifted; }
    static When when(graph::Previous<T>) { return When::previous; }
    static When when(graph::Current<T>) { return When::current; }
    static Seq<T> sequence(Seq<T> a) { return a; }
    template <class A> static Seq<T> sequence(A a) { return a.of; }

    Weight<T> weight(const std::string& name, Index rows, Index cols) const;
    Weight<T> weight(Weight<T> shared, Index rows, Index cols) const;
    Weight<T> weight(graph::Transposed<T> shared, Index rows, Index cols) const {
        return weight(shared.of, cols, rows);
    }
    template <class W, class A> UnitsBuilder& term(const W& w, const A& a, Tokens x, Mask mask);

    Setup<T>& setup_;
    Units<T> units_;
    Init init_ = uniform(0.1);
};

/// Passed to a node's `setup`. Everything the node will ever need is declared here; afterwards nothing is
/// allocated. Names are local: "W" in node "lstm1" becomes "lstm1.W".
template <class T> class Setup {
public:
    Setup(graph::Store<T>& store, int node) : store_(store), node_(node) {}

    const std::string& name() const { return store_.node_names[node_]; }
    Capacity capacity() const { return store_.capacity; }

    /// An output or intermediate sequence [T, B, width].
    Seq<T> sequence(const std::string& local, Index width) { return add(local, width, false); }

    /// A sequence whose value before the first step is carried over from the last step of the previous
    /// pass, zero after a reset.
    Seq<T> recurrent(const std::string& local, Index width) { return add(local, width, true); }

    /// Declares that other nodes may take this sequence as input, as they may what setup() returns: for one whose
    /// adjoint this node's backward adds to and never overwrites, which would lose what they have added. The values
    /// of the others can be read all the same.
    void open(Seq<T> a) { own(a).internal = false; }

    graph::Previous<T> previous(Seq<T> a) const { return {with_lead(a)}; }
    graph::Shifted<T> shifted(Seq<T> a) const { return {with_lead(a)}; }
    graph::Current<T> current(Seq<T> a) const {
        own(a);
        return {a};
    }
    graph::Transposed<T> transposed(Weight<T> w) const { return {w}; }

    UnitsBuilder<T> units(const std::string& local, Index width) {
        return UnitsBuilder<T>(*this, local, width);
    }

    /// A parameter [rows, cols] of this node.
    Weight<T> weight(const std::string& local, Index rows, Index cols, const Init& init) {
        return graph::add_weight(store_, full(local), rows, cols, init);
    }

    /// A dropout mask [groups, B, width] drawn once per training pass: 1/keep with probability keep,
    /// 2⁻³² to 1, else 0. In evaluation, and for keep = 1, no mask is active.
    Mask mask(const std::string& local, Index width, double keep, Index groups = 1) {
        require("keep", keep, 0x1p-32, 1);
        require("width of a mask", width, 1);
        require("groups of a mask", groups, 1);
        store_.claim(full(local), "mask");
        graph::MaskRecord<T> r{.name = full(local),
                               .node = node_,
                               .width = width,
                               .groups = groups,
                               .keep = keep,
                               .stream = stream_of(full(local))};
        if (keep < 1 && gradients()) r.value = scratch({groups, store_.capacity.batch, width});
        store_.masks.push_back(r);
        return {store_.masks.count() - 1};
    }

    /// The node's own memory, zeroed once and kept between passes: an array of these sizes, or of n elements.
    /// Throws UsageError if there is not enough memory.
    template <class U = T> U* scratch(std::initializer_list<Index> sizes) {
        return store_.arena.template take<U>(sizes, who());
    }
    template <class U = T> U* scratch(Index n) { return scratch<U>({n}); }  ///< see above

    /// Stores a record of the node's own type in the graph, for code that knows the type, such as metrics, to
    /// find by Store::all.
    template <class R> void publish(R record) {
        store_.published.push_back({node_, std::any(std::move(record))});
    }

    /// Declares that these tokens are read as input, so that not_predicted among them is an error.
    void read(Tokens x) { own(x).read_by_node = true; }

    /// Declares that a weight is read, and its gradient added to, row by row.
    void lookup(Weight<T> w) {
        auto& p = own(w);
        p.used_by(node_);
        if (p.lookups++ == 0 && p.gradient) {
            p.touched.reserve(p.rows);
            p.hit.assign(p.rows, std::uint8_t{0});
        }
    }

    /// Declares that the node adds to a weight's gradient by itself, through Backward::gradient: what it uses through
    /// units, logits and lookup() is recorded by these.
    void uses(Weight<T> w) { own(w).used_by(node_); }

    /// Lazy logits o = h Eᵀ (+ b) over a table E [V, width of h] and, if given, a bias [1, V].
    Logits<T> logits(Seq<T> hidden, Weight<T> table, Weight<T> bias = {}) {
        own(hidden), own(table);
        if (hidden.width != table.cols)
            fail("the input has width ", hidden.width, " but the table '", store_[table].name, "' has width ",
                 table.cols, "; put a Linear node between, or change the layer below");
        store_[table].used_by(node_);
        if (bias.id >= 0) {
            require_shape(bias, 1, table.rows);
            own(bias).used_by(node_);
        }
        store_.logits.push_back({name(), table.rows, hidden, table, bias, node_});
        return {store_.logits.count() - 1, table.rows, store_.serial};
    }

    /// The scalar this node computes. With `by_token` a loss is also kept for every position [T, B].
    Loss<T> loss(bool by_token = true) {
        graph::LossRecord r{.name = name(), .node = node_};
        if (by_token) r.by_token = scratch<double>(store_.capacity_rows());
        store_.losses.push_back(r);
        return {store_.losses.count() - 1, store_.serial};
    }

    /// Declares `total` to be a weighted sum of other losses; call once per part.
    void part(Loss<T> total, Loss<T> of, double weight) {
        own(of);
        own(total).parts.push_back({of.id, weight});
    }

    /// The record behind logits: hidden states, table and bias as handles.
    Seq<T> hidden(Logits<T> o) const { return own(o).hidden; }
    Weight<T> table(Logits<T> o) const { return own(o).table; }  ///< see above
    Weight<T> bias(Units<T> z) const { return store_[z].bias; }  ///< of units of this node; empty for none

    /// Whether some node looks up rows of this weight, as in an embedding table.
    bool is_looked_up(Weight<T> w) const { return own(w).lookups > 0; }

    /// Whether the graph computes gradients. If not, no pass is in training and backward never runs, so that what
    /// only these need may be omitted.
    bool gradients() const { return store_.gradients; }
    /// Whether there is memory for the gradient of a weight: not with WeightOptions::trained = false. For whether
    /// a pass computes it, see Pass::is_trained.
    bool has_gradient(Weight<T> w) const { return own(w).gradient != nullptr; }
    /// Whether the transpose of a weight is packed already, for graphs on the weights of another.
    bool is_packed(Weight<T> w) const { return own(w).packed_transpose != nullptr; }
    /// Bytes a loss may take for blocks of logits from this table (GraphOptions::budget), the table packed for a pass
    /// included, and a second table if there is one. In bfloat16 they grow with both; blocks of too few rows would
    /// each cost a pass over them.
    Index budget(Weight<T> table, Weight<T> second = {}) const {
        constexpr Index least = Index{32} << 20;
        const auto size = [this](Weight<T> w) {  // held in memory: no overflow
            return own(w).rows * own(w).cols * Index{sizeof(T)};
        };
        const Index bytes = size(table) + (second.id >= 0 && !(second == table) ? size(second) : 0);
        return store_.budget.value_or(store_.precision == Precision::bf16 ? std::max(least, bytes / 2 * 3)
                                                                          : least);
    }
    Precision precision() const { return store_.precision; }  ///< of training: full or bf16
    double epsilon() const { return store_.epsilon; }         ///< GraphOptions::epsilon

    /// The name behind a handle, for messages.
    template <class H> const std::string& name_of(const H& handle) const { return own(handle).name; }

    /// Refuses a request: throws UsageError "node 'name': message".
    template <class... Parts> [[noreturn]] void fail(Parts... why) const {
        throw UsageError(who(), ": ", why...);
    }
    /// Throws UsageError unless an option of the node lies between `low` and `high`; see isogloss::require.
    template <class V>
    void require(std::string_view option, V value, std::type_identity_t<detail::Bound<V>> low,
                 std::type_identity_t<detail::Bound<V>> high = std::numeric_limits<V>::max()) const {
        isogloss::require(who(), option, value, low, high);
    }

    /// Throws UsageError unless a weight given to the node has this shape.
    void require_shape(Weight<T> w, Index rows, Index cols) const {
        if (own(w).rows != rows || own(w).cols != cols)
            fail("weight '", own(w).name, "' is [", w.rows, ", ", w.cols, "], expected [", rows, ", ", cols,
                 "]");
    }

private:
    friend class UnitsBuilder<T>;
    std::string who() const { return message("node '", name(), "'"); }
    std::string full(const std::string& local) const { return name() + "." + local; }
    // The record behind a handle. Throws UsageError for one that is empty, as before it is assigned, or another graph's.
    template <class H> auto& own(const H& handle) const {
        store_.require_own(handle, who());
        return store_[handle];
    }
    Seq<T> with_lead(Seq<T> a) const {
        if (own(a).lead == 0)
            fail("'", own(a).name, "' has no value before the first step; declare it with recurrent()");
        return a;
    }
    Seq<T> add(const std::string& local, Index width, bool carried, const char* kind = "sequence") {
        store_.claim(full(local), kind);
        const Seq<T> a{store_.add_seq(full(local), width, carried, node_), width, store_.serial};
        store_[a].internal = true;
        return a;
    }

    graph::Store<T>& store_;
    int node_;
};

template <class T> UnitsBuilder<T>::UnitsBuilder(Setup<T>& setup, const std::string& name, Index width)
    : setup_(setup) {
    const Seq<T> z = setup.add(name, width, false, "sequence of units");
    setup.store_.units.push_back({.name = setup.full(name), .width = width, .z = z, .node = setup.node_});
    units_ = {setup.store_.units.count() - 1, z};
}

template <class T> Weight<T> UnitsBuilder<T>::weight(const std::string& name, Index rows, Index cols) const {
    return setup_.weight(name, rows, cols, init_);
}

template <class T> Weight<T> UnitsBuilder<T>::weight(Weight<T> shared, Index rows, Index cols) const {
    setup_.require_shape(shared, rows, cols);
    return shared;
}

template <class T> template <class W, class A>
UnitsBuilder<T>& UnitsBuilder<T>::term(const W& w, const A& a, Tokens x, Mask mask) {
    auto& store = setup_.store_;
    auto& record = store[units_];
    setup_.own(sequence(a));
    graph::Source<T> source{.when = when(a), .input = sequence(a)};
    source.transposed = std::is_same_v<W, graph::Transposed<T>>;
    const Index width = source.input.width;
    Index matrices = 1;
    if (x.id >= 0) {
        setup_.read(x);
        source.tokens = x;
        matrices = x.vocabulary;
    }
    source.weight = weight(w, elements_of(record.name, {matrices, width}), record.width);
    store[source.weight].used_by(setup_.node_);
    if (mask.id >= 0 && store[mask].keep < 1) {
        const auto& m = store[mask];
        if (m.width != width || record.width % m.groups != 0)
            setup_.fail("mask '", m.name, "' does not fit an input of width ", width, " into its units");
        source.mask = mask;
        if (setup_.gradients()) source.masked = setup_.scratch({store.capacity_rows(), width});
    }
    if (source.by_step() && x.id < 0 && store.capacity.time >= graph::worth_packing &&
        !store[source.weight].packed &&
        graph::PackedMatrix<T>::serves(store.precision, std::max(width, record.width))) {
        Index bytes = 0;  // of the matrix or its transpose, in training or evaluation
        for (const Precision precision : {Precision::full, store.precision})
            for (const auto& [k, n] : {std::pair{width, record.width}, std::pair{record.width, width}})
                bytes = std::max(bytes, graph::PackedMatrix<T>::bytes(precision, k, n));
        source.memory = setup_.template scratch<std::byte>(bytes);
    }
    if (store.moduli) source.squared = setup_.scratch(store[source.weight].size());
    record.sources.push_back(source);
    return *this;
}

template <class T> template <class W, class A>
UnitsBuilder<T>& UnitsBuilder<T>::from(const W& w, const A& a, Tokens x) {
    setup_.own(x);  // empty tokens would leave out the choice without a word
    return term(w, a, x, Mask{});
}

template <class T> UnitsBuilder<T>& UnitsBuilder<T>::bias(const std::string& name, const Init& init) {
    auto& store = setup_.store_;
    auto& record = store[units_];
    record.bias = setup_.weight(name, 1, record.width, init);
    store[record.bias].used_by(setup_.node_);
    return *this;
}

}}  // namespace isogloss
