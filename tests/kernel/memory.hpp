/// @file memory.hpp  Rows for kernels: anywhere in memory, of any length, with a fence behind them.
#pragma once

#include <isogloss/random.hpp>
#include <vector>

/// Lengths with every tail of every vector width, and some around the chunks of 512 that sums run in.
inline std::vector<isogloss::Index> lengths() {
    std::vector<isogloss::Index> n = {511, 512, 513, 1500};
    for (isogloss::Index i = 1; i <= 70; ++i) n.push_back(i);
    return n;
}

/// n numbers that start `offset` elements after an aligned address, followed by nothing: what reads beyond
/// is caught by the address sanitizer, what writes beyond by the fence.
template <class T> class Memory {
public:
    static constexpr int fence = 16;  // a lane group, so that a whole one written too far is seen

    Memory(isogloss::Index n, isogloss::Index offset, T value = T(0))
        : offset_(static_cast<std::size_t>(offset)),
          values_(offset_ + static_cast<std::size_t>(n), value),
          fenced_(values_.size() + fence, T(-77)) {
        std::copy(values_.begin(), values_.end(), fenced_.begin());
    }
    /// Normal numbers of a seed.
    static Memory random(isogloss::Index n, isogloss::Index offset, std::uint32_t seed, double scale = 1) {
        Memory m(n, offset);
        const isogloss::Random random(seed, 1);
        for (isogloss::Index i = 0; i < n; ++i) m[i] = static_cast<T>(scale * random.normal(i));
        return m;
    }

    isogloss::Index size() const { return static_cast<isogloss::Index>(values_.size() - offset_); }
    T& operator[](isogloss::Index i) { return values_[offset_ + static_cast<std::size_t>(i)]; }
    T operator[](isogloss::Index i) const { return values_[offset_ + static_cast<std::size_t>(i)]; }
    /// For reading: memory that ends with the last number.
    const T* in() const { return values_.data() + offset_; }
    /// The same through a pointer that may write, for what reads a record.
    T* in_record() { return values_.data() + offset_; }
    /// For writing: give this to a kernel, then call written().
    T* out() {
        std::copy(values_.begin(), values_.end(), fenced_.begin());
        return fenced_.data() + offset_;
    }
    /// Takes what a kernel wrote; false when it wrote in front of the row or beyond it.
    bool written() {
        bool intact = true;
        for (std::size_t i = 0; i < offset_; ++i) intact = intact && fenced_[i] == values_[i];
        for (std::size_t i = values_.size(); i < fenced_.size(); ++i) intact = intact && fenced_[i] == T(-77);
        std::copy(fenced_.begin(), fenced_.end() - fence, values_.begin());
        return intact;
    }

    bool operator==(const Memory&) const = default;

private:
    std::size_t offset_;
    std::vector<T> values_, fenced_;
};
