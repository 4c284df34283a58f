/// @file threads.hpp  How many threads the library uses, and how BLAS is kept from adding its own.
#pragma once

#include <algorithm>
#include <atomic>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <isogloss/error.hpp>
#include <isogloss/types.hpp>

// Present in OpenBLAS, absent elsewhere: weak, so that any BLAS links.
extern "C" {
[[gnu::weak]] void openblas_set_num_threads(int);
[[gnu::weak]] int openblas_get_num_threads(void);
[[gnu::weak]] char* openblas_get_corename(void);
[[gnu::weak]] int openblas_get_parallel(void);
}

namespace isogloss {

namespace kernel {
inline std::atomic<int>& thread_count() {
    static std::atomic<int> count{1};
    return count;
}
}  // namespace kernel

/// Threads used by the library's passes, 1 unless set.
inline int threads() { return kernel::thread_count().load(std::memory_order_relaxed); }

/// Sets the number of threads for all later passes of this process, n ≥ 1. Without OpenMP at compile
/// time every pass runs on one thread whatever n is. Results are the same bits for the same n; another
/// n may change the order of a few sums.
///
/// Throws GraphError for n < 1.
inline void threads(int n) {
    if (n < 1) throw GraphError(text("threads: found ", n, ", expected at least 1"));
    kernel::thread_count().store(n, std::memory_order_relaxed);
}

/// For as long as it lives BLAS runs on one thread, because the library splits its products itself; the
/// host program's settings come back afterwards. Every pass and every update holds one.
class BlasOnOneThread {
public:
    BlasOnOneThread() {
#ifdef _OPENMP
        omp_ = omp_get_max_threads();
        omp_set_num_threads(1);  // the only thing OpenBLAS's OpenMP flavour heeds
#endif
        if (openblas_set_num_threads) {
            blas_ = openblas_get_num_threads();
            if (blas_ != 1) openblas_set_num_threads(1);
        }
    }
    ~BlasOnOneThread() {
        if (openblas_set_num_threads && blas_ != 1) openblas_set_num_threads(blas_);
#ifdef _OPENMP
        omp_set_num_threads(omp_);  // after BLAS, which may have changed it
#endif
    }
    BlasOnOneThread(const BlasOnOneThread&) = delete;
    BlasOnOneThread& operator=(const BlasOnOneThread&) = delete;

private:
    int blas_ = 1;
    [[maybe_unused]] int omp_ = 1;
};

namespace kernel {

/// Runs f(first, last) over [0, n) cut into at most threads() contiguous pieces, each a multiple of
/// `grain` long but for the last. f must not throw. The cut depends on n, grain and threads() alone.
template <class F> void parallel(Index n, Index grain, F&& f) {
    const Index pieces = std::min<Index>(threads(), (n + grain - 1) / std::max<Index>(grain, 1));
    if (pieces <= 1) {
        if (n > 0) f(Index{0}, n);
        return;
    }
    const Index grains = (n + grain - 1) / grain;
#ifdef _OPENMP
#pragma omp parallel for schedule(static, 1) num_threads(static_cast<int>(pieces))
#endif
    for (Index i = 0; i < pieces; ++i) {
        const Index first = grains * i / pieces * grain;
        const Index last = std::min(n, grains * (i + 1) / pieces * grain);
        if (first < last) f(first, last);
    }
}

}  // namespace kernel
}  // namespace isogloss
