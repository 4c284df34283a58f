/// @file threads.hpp  How many threads the library uses, and how BLAS is kept from adding its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __MINGW32__
#include <cxxabi.h>
#endif

#include <isogloss/error.hpp>
#include <isogloss/subnormals.hpp>
#include <isogloss/types.hpp>

// Present in OpenBLAS, absent elsewhere: weak, so that any BLAS links.
extern "C" {
[[gnu::weak]] void openblas_set_num_threads(int);
[[gnu::weak]] int openblas_get_num_threads(void);
[[gnu::weak]] char* openblas_get_corename(void);
[[gnu::weak]] int openblas_get_parallel(void);
}

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace detail {
inline std::atomic<int>& thread_count() {
    static std::atomic<int> count{1};
    return count;
}

/// The object of type T of the calling thread, made at its first use and destroyed when the thread ends.
template <class T> T& of_this_thread() {
#ifdef __MINGW32__  // frees what is thread_local before its destructors run
    thread_local T* object = nullptr;
    if (!object) {
        object = new T;
        abi::__cxa_thread_atexit([](void* ended) { delete static_cast<T*>(ended); }, object, nullptr);
    }
    return *object;
#else
    thread_local T object;
    return object;
#endif
}
}  // namespace detail

/// Threads used by the library's passes: 1 unless set by threads(n); OMP_NUM_THREADS does not set it.
inline int threads() { return detail::thread_count().load(std::memory_order_relaxed); }

/// Largest number of threads that can be set.
inline constexpr int most_threads = 1024;

/// Sets the number of threads for all later passes of this process, 1 ≤ n ≤ most_threads. Without OpenMP at
/// compile time every pass runs on one thread whatever n is. On processors of one kind, whatever the number of their
/// cores, results are bitwise the same for the same n; another n may change the order of a few sums. A child of fork()
/// has none of its parent's threads, and its first pass may never end: let it begin with threads(1).
///
/// Throws UsageError for any other n.
inline void threads(int n) {
    require("threads", "n", n, 1, most_threads);
    detail::thread_count().store(n, std::memory_order_relaxed);
}

/// With `wanted`, training, evaluation, sampling and scoring give the same bits for every instruction set, compiler,
/// level of optimisation and number of threads() of this process: products of matrices are the library's own in place of
/// those of BLAS, and subnormal numbers are kept. Call it before a graph is built. Not covered: bfloat16, 8-bit integers,
/// and what calls LAPACK (linear dynamical systems, principal angles).
///
/// Throws UsageError if the compiler contracts a b + c to one rounding or reorders sums: compile with -ffp-contract=off, as
/// the targets of CMake and pkg-config do, and without -ffast-math.
inline void portable(bool wanted) {
#ifdef __FAST_MATH__
    constexpr bool reordered = true;
#else
    constexpr bool reordered = false;
#endif
    volatile double third = 1. / 3, three = 3, minus_one = -1;  // out of sight of the compiler
    const double x = third, y = three, z = minus_one;
    if (wanted && (reordered || x * y + z != 0))
        throw UsageError(
            "portable: found products and sums contracted or reordered by the compiler, expected each "
            "rounded; ",
            "compile with -ffp-contract=off and without -ffast-math");
    detail::is_portable().store(wanted, std::memory_order_relaxed);
}

/// During its lifetime BLAS runs on one thread, because the library splits its products itself; when the last
/// one is destroyed the host program's settings are restored, also when several threads hold one each. Every
/// pass holds one, and so does Graph::head.
class BlasOnOneThread {
public:
    BlasOnOneThread() {
#ifdef _OPENMP
        omp_ = omp_get_max_threads();
        omp_set_num_threads(1);  // all that an OpenMP build of OpenBLAS obeys; set for this thread only
#endif
        if (!openblas_set_num_threads) return;
        const std::lock_guard lock(shared().mutex);
        if (shared().holders++ > 0) return;
        shared().before = openblas_get_num_threads();
        if (shared().before != 1) openblas_set_num_threads(1);
    }
    ~BlasOnOneThread() {
        if (openblas_set_num_threads) {
            const std::lock_guard lock(shared().mutex);
            if (--shared().holders == 0 && shared().before != 1) openblas_set_num_threads(shared().before);
        }
#ifdef _OPENMP
        omp_set_num_threads(omp_);  // after BLAS, which may have changed it
#endif
    }
    BlasOnOneThread(const BlasOnOneThread&) = delete;
    BlasOnOneThread& operator=(const BlasOnOneThread&) = delete;

private:
    struct Shared {
        std::mutex mutex;
        int holders = 0, before = 1;
    };
    static Shared& shared() {
        static Shared s;
        return s;
    }
    [[maybe_unused]] int omp_ = 1;
};

/// Number of pieces into which parallel() splits n items.
inline Index piece_count(Index n, Index grain, Index most) {
    return std::max<Index>(1, std::min<Index>(std::min<Index>(threads(), most), (n + grain - 1) / grain));
}

/// Runs f(first, last, piece) over [0, n) split into at most min(threads(), most) contiguous pieces, each
/// except the last a multiple of `grain` ≥ 1 long. If f throws, the exception of the first piece that did is
/// rethrown when all have ended. The split depends only on n, grain, most
/// and threads(); inside a parallel region, the calling thread runs all pieces. If SubnormalsAreZero is
/// active for the caller, it is for all threads.
template <class F> void parallel(Index n, Index grain, Index most, F&& f) {
    const Index count = piece_count(n, grain, most), grains = (n + grain - 1) / grain;
    if (count == 1) {
        if (n > 0) f(Index{0}, n, Index{0});
        return;
    }
    const auto run = [&](Index i) {
        const Index first = grains * i / count * grain;
        const Index last = std::min(n, grains * (i + 1) / count * grain);
        if (first < last) f(first, last, i);
    };
#ifdef _OPENMP
    if (!omp_in_parallel()) {
        const bool flush = SubnormalsAreZero::active();
        const SubnormalsAreZero lifted(false);  // a thread created here would keep it permanently
        const int team = static_cast<int>(count);
        std::exception_ptr thrown;  // none may leave the parallel region
        Index thrown_by = count;
#pragma omp parallel for schedule(static, 1) num_threads(team)
        for (Index i = 0; i < count; ++i) {
            const SubnormalsAreZero here(flush);
            try {
                run(i);
            } catch (...) {
#pragma omp critical(isogloss_parallel)
                if (i < thrown_by) thrown_by = i, thrown = std::current_exception();
            }
        }
        if (thrown) std::rethrow_exception(thrown);
        return;
    }
#endif
    for (Index i = 0; i < count; ++i) run(i);
}

/// The same with `pieces` pieces whatever threads() is, which share them: for sums whose bits it must not change.
template <class F> void parallel_pieces(Index n, Index grain, Index pieces, F&& f) {
    const Index grains = (n + grain - 1) / grain;
    parallel(pieces, 1, pieces, [&](Index begin, Index end, Index) {
        for (Index i = begin; i < end; ++i) {
            const Index first = grains * i / pieces * grain,
                        last = std::min(n, grains * (i + 1) / pieces * grain);
            if (first < last) f(first, last, i);
        }
    });
}

}}  // namespace isogloss
