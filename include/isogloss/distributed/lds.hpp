/// @file distributed/lds.hpp  EM and subspace identification by several ranks, each with rows of the co-occurrences.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <isogloss/distributed/shard_sum.hpp>
#include <isogloss/lds/asos.hpp>
#include <isogloss/lds/subspace.hpp>
#include <span>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

namespace detail {

/// The first word of each of `ranges` ranges of words, followed by V. The rows of each range cost about the same
/// in products with N_1 … N_r, counting `dense` additional terms per row.
template <class T>
Array<Index> ranges_of_words(const lds::LagMoments<T>& moments, Index dense, Index ranges) {
    const Index V = moments.vocabulary();
    double all = 0, before = 0;
    Array<double> cost;
    for (Index i = 0; i < V; ++i) {
        cost.push_back(static_cast<double>(moments.row_terms(i) + dense));
        all += cost.back();
    }
    Array<Index> first(1, 0);
    for (Index i = 0; i < V; before += cost[i++])
        while (std::ssize(first) < ranges && (before + cost[i] / 2) * static_cast<double>(ranges) >=
                                                 all * static_cast<double>(first.size()))
            first.push_back(i);
    first.resize(ranges + 1, V);
    return first;
}

/// All-gathers rows first[r] … first[r + 1] - 1 of each of the x.rows / V blocks of x from rank r.
template <class T, Communicator C> void gather_rows(C& ranks, const Array<Index>& first, MatrixRef<T> x) {
    if (ranks.size() == 1) return;
    const Index V = first.back(), blocks = x.rows / V, l = x.cols;
    Array<T> own, whole(x.rows * l);
    std::vector<Index> bytes;
    for (Index r = 0; r < ranks.size(); ++r)
        bytes.push_back(blocks * (first[r + 1] - first[r]) * l * Index{sizeof(T)});
    const auto rows = [&](Index r, auto&& f) {
        for (Index block = 0; block < blocks; ++block)
            f(x.row(block * V + first[r]), (first[r + 1] - first[r]) * l);
    };
    rows(ranks.rank(), [&](const T* from, Index n) { own.insert(own.end(), from, from + n); });
    ranks.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(whole)), bytes);
    const T* from = whole.data();
    for (Index r = 0; r < ranks.size(); ++r)
        rows(r, [&](T* to, Index n) { std::copy_n(std::exchange(from, from + n), n, to); });
}

/// The first word of each rank if it has the shards of shards_of().
inline Array<Index> ranges_of_ranks(const Array<Index>& shards, Index ranks) {
    Array<Index> first;
    for (Index r = 0; r < ranks; ++r)
        first.push_back(shards[shards_of(r, ranks, std::ssize(shards) - 1).first]);
    first.push_back(shards.back());
    return first;
}

/// lds::HankelOperator with rows computed by several ranks; every rank gets the whole result.
template <class T, Communicator C> class RankHankel {
public:
    using Scalar = T;
    /// The moments and the communicator must outlive it. Throws as HankelOperator.
    RankHankel(const lds::LagMoments<T>& moments, Index r, C& ranks)
        : moments_(moments), r_(r), ranks_(ranks), first_(ranges_of_words(moments, 1, ranks.size())) {
        const lds::HankelOperator<T> checked(moments, r);
    }
    Index size() const { return r_ * moments_.vocabulary(); }  ///< rV
    /// As in HankelOperator: calls f(columns) after each of the r² sparse products, on every rank.
    void after_each_product(std::function<void(Index)> f) { watch_ = std::move(f); }
    void apply(const lds::TallMatrix<T>& x, lds::TallMatrix<T>& y) const { run<false>(x, y); }  ///< y = H x
    void apply_transposed(const lds::TallMatrix<T>& x, lds::TallMatrix<T>& y) const {
        run<true>(x, y);
    }  ///< y = Hᵀ x

private:
    template <bool transpose> void run(const lds::TallMatrix<T>& x, lds::TallMatrix<T>& y) const {
        const Index V = moments_.vocabulary(), l = dense::cols(x), begin = first_[ranks_.rank()],
                    n = first_[ranks_.rank() + 1] - begin;
        y = dense::zeros<T>(size(), l);
        lds::TallMatrix<T> part = dense::zeros<T>(n, l);
        for (Index from = 0; from < r_; ++from) {
            const lds::TallMatrix<T> z = moments_.weighted(dense::ref(x).rows_from(from * V, V));
            for (Index to = 0; to < r_; ++to) {
                if constexpr (transpose)
                    moments_.apply_transposed_rows(r_ - to + from, dense::ref(z), begin, begin + n,
                                                   dense::ref(part));
                else moments_.apply_rows(r_ - from + to, dense::ref(z), begin, begin + n, dense::ref(part));
                T* const sum = y.data() + (to * V + begin) * l;
                for (std::size_t k = 0; k < part.size(); ++k) sum[k] += part.data()[k];
                if (watch_) watch_(l);
            }
        }
        gather_rows(ranks_, first_, dense::ref(y));
        for (Index block = 0; block < r_; ++block)
            lds::project_out<T>(moments_.whitening().m, dense::ref(y).rows_from(block * V, V));
    }

    const lds::LagMoments<T>& moments_;
    Index r_;
    C& ranks_;
    Array<Index> first_;  // words of each rank
    std::function<void(Index)> watch_;
};

}  // namespace detail

/// asos_statistics by several ranks: words are cut into shards, and a rank computes the rows of its shards of U_l,
/// Z_l and E[yx̄ᵀ]. Sums over words, B_l and mᵀE[yx̄ᵀ], use a fixed tree over the shards; every rank does the
/// h × h algebra. With the same shards, 1, 2, 4 … ranks give bit-identical statistics on every rank, and
/// hence the same system from maximise().
///
///     const LagMoments<float> moments(counts);              // on every rank, from one mapped file for instance
///     for (…) maximise(asos_statistics(system, steady_state(system), moments, 7, ranks, 4), system);
///
/// Collective. Every rank has the system and all counts, of which it reads the rows of its words and, for Z_l,
/// their columns in all rows.
///
/// Departure from asos_statistics: Π is applied to the sum E[yx̄ᵀ] and not to each U_l and Z_l, which is the same
/// up to rounding since Cᵀm = 0.
///
/// Cost     a rank's share of the products; sent (k + 1) h² + h doubles, once or twice, a share of V h numbers
/// Errors   as asos_statistics; UsageError for fewer shards than ranks, and on every rank where they differ in shards,
///          k, h or V.
template <class T, Communicator C>
lds::Statistics<T> asos_statistics(const lds::Lds<T>& s, const lds::SteadyState& f,
                                   const lds::LagMoments<T>& moments, Index k, C& ranks, Index shards) {
    using namespace lds;
    // What is sent has these sizes.
    require_same("ASOS", ranks, std::array{"shards", "horizon", "states", "words"},
                 std::array{shards, k, s.states(), s.vocabulary()});
    lds::detail::require_asos(s, f, moments, k);
    require("ASOS", "shards", shards, Index{ranks.size()}, most_shards);
    const BlasOnOneThread blas;
    const Index h = s.states(), V = s.vocabulary();
    const Array<double>& m = s.whitening.m;
    const AsosRecursion recursion(s.A, s.M, f, k);
    const Array<Index> first = distributed::detail::ranges_of_words(moments, 3 * k * h / 2, shards);
    const auto mine = shards_of(ranks.rank(), ranks.size(), shards);
    Statistics<T> out;
    out.yx = zeros<T>(V, h);
    const TallMatrix<T> z = moments.weighted(ref(s.C));

    ShardSum<double> sum(shards);
    for (Index shard = mine.first; shard < mine.last; ++shard) {
        const Index begin = first[shard], end = first[shard + 1], n = end - begin;
        const auto c = ref(s.C).rows_from(begin, n);
        const auto yx = ref(out.yx).rows_from(begin, n);
        const auto B = recursion.add_terms<T>(
            c, yx,
            [&](Index l, MatrixRef<T> U) {
                if (l == 0) std::copy_n(c.data, n * h, U.data);  // U_0 = C
                else moments.apply_rows(l, ref(z), begin, end, U);
            },
            [&](Index l, MatrixRef<T> Z) { moments.apply_transposed_rows(l, ref(z), begin, end, Z); });
        Array<double> sums;
        for (const SmallMatrix& b : B) sums.insert(sums.end(), b.data(), b.data() + h * h);
        Array<double> along(h);
        for (Index i = 0; i < n; ++i)
            for (Index j = 0; j < h; ++j) along[j] += m[begin + i] * static_cast<double>(yx.row(i)[j]);
        sums.insert(sums.end(), along.begin(), along.end());
        sum.take(shard, std::move(sums));
    }
    const Array<double>& sums = sum.finish(ranks);
    Array<SmallMatrix> B;
    for (Index l = 0; l <= k; ++l) {
        B.push_back(zeros<double>(h, h));
        std::copy_n(sums.data() + l * h * h, h * h, B.back().data());
    }
    const double* const along = sums.data() + (k + 1) * h * h;

    const SmallMatrix beyond = recursion.finish(B, B[0], s.whitening.dimension, out);  // U_0 = C
    for (Index shard = mine.first; shard < mine.last; ++shard) {
        const Index begin = first[shard], n = first[shard + 1] - begin;
        const auto yx = ref(out.yx).rows_from(begin, n);
        for (Index i = 0; i < n; ++i)
            for (Index j = 0; j < h; ++j) yx.row(i)[j] -= static_cast<T>(m[begin + i] * along[j]);
        add_product<T>(1, ref(s.C).rows_from(begin, n), beyond, yx);
    }
    distributed::detail::gather_rows(ranks, distributed::detail::ranges_of_ranks(first, ranks.size()),
                                     ref(out.yx));
    return out;
}

/// subspace_identification by several ranks: each rank computes the rows of its words in the products with N_k;
/// every rank does everything else, including the orthonormal blocks [rV, h + oversampling]. Every row of a
/// product is the same whichever rank computes it: any number of ranks gives bit-identical systems.
///
/// Departure from subspace_identification: Π is applied once per block of a product with the Hankel operator, so
/// that results differ by rounding.
///
/// `watch` is called on every rank at the same points, and may communicate there: to abort, throw on all
/// ranks.
///
/// Collective. Sent: a rank's share of r V (h + oversampling) numbers per product.
template <class T, Communicator C>
lds::Subspace<T> subspace_identification(const lds::LagMoments<T>& moments, lds::SubspaceOptions options,
                                         C& ranks, lds::SubspaceWatch<T> watch = {}) {
    detail::RankHankel<T, C> H(moments, options.lags, ranks);
    lds::detail::tell_progress(H, options, watch);
    return lds::detail::identify(H, moments.whitening(), options, std::move(watch));
}

}}}  // namespace isogloss::distributed
