/// @file tensor.hpp  The array layer: the only header that includes xtensor itself, in its old and new layout.
#pragma once

#if __has_include(<xtensor/containers/xtensor.hpp>)  // 0.26 and later
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#include <xtensor/views/xview.hpp>
#else  // up to 0.25
#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <isogloss/error.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/types.hpp>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Owning dense array of N dimensions, row-major.
template <class T, std::size_t N> using Tensor = xt::xtensor<T, N>;

template <class T> class MatrixView;

namespace detail {

/// What xtensor itself would make of memory owned elsewhere: MatrixView shares its types.
template <class T> using MatrixAdaptor =
    decltype(xt::adapt(std::declval<T*>(), std::size_t{}, xt::no_ownership(), std::array<std::size_t, 2>{}));

}  // namespace detail
}}  // namespace isogloss

/// @cond What xtensor requires of a container type of its own: no part of the reference
namespace xt {
template <class T> struct xcontainer_inner_types<isogloss::MatrixView<T>>
    : xcontainer_inner_types<isogloss::detail::MatrixAdaptor<T>> {};
template <class T> struct xiterable_inner_types<isogloss::MatrixView<T>>
    : xcontainer_iterable_types<isogloss::MatrixView<T>> {};
}  // namespace xt
/// @endcond

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Arrays of different shapes in an assignment to a MatrixView.
class ShapeError : public UsageError {
    using UsageError::UsageError;
};

/// A matrix [rows, cols] over memory owned elsewhere, as an xtensor container of fixed shape. T may be const.
///
/// An assignment writes numbers to that memory, from an array or expression of the same shape; any other shape is a
/// ShapeError before anything is written. It never changes what the view refers to, not even from another view:
/// xtensor's own adaptors would take over the pointer of the other, and the shape of an array of as many numbers.
/// Therefore an expression over views is not to be assigned to again: its views would write. `auto e = tanh(v);
/// e = tanh(w);` copies w into v; begin a new expression, or keep a Tensor.
///
/// Assign with `noalias(view) = expression`: nothing is allocated. noalias, tanh, exp, square and the other
/// elementwise functions are found by argument-dependent lookup, so a cell reads like its equations.
template <class T> class MatrixView : public xt::xstrided_container<MatrixView<T>>,
                                      public xt::xcontainer_semantic<MatrixView<T>> {
    using Container = xt::xstrided_container<MatrixView>;
    using Semantic = xt::xcontainer_semantic<MatrixView>;

public:
    using storage_type = typename Container::storage_type;
    using allocator_type = typename Container::allocator_type;
    using shape_type = typename Container::shape_type;
    using temporary_type = typename Semantic::temporary_type;
    using expression_tag = xt::xtensor_expression_tag;
    static constexpr std::size_t rank = 2;

    /// `name`: of the matrix in errors, kept by pointer; null: none.
    MatrixView(T* data, Index rows, Index cols, const std::string* name = nullptr)
        : memory_(data, static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols)), name_(name) {
        Container::resize(shape_type{static_cast<std::size_t>(rows), static_cast<std::size_t>(cols)});
    }
    ~MatrixView() = default;
    MatrixView(const MatrixView&) = default;  ///< the same memory
    MatrixView(MatrixView&&) = default;       ///< the same memory
    MatrixView& operator=(const MatrixView& other) {
        require_shape(other.shape());
        std::copy_n(other.data(), other.size(), this->data());
        return *this;
    }
    MatrixView& operator=(MatrixView&& other) { return *this = std::as_const(other); }  ///< copies numbers
    MatrixView& operator=(temporary_type&& value) {                                     ///< likewise
        require_shape(value.shape());
        std::copy_n(value.data(), value.size(), this->data());
        return *this;
    }
    template <class E> MatrixView& operator=(const xt::xexpression<E>& value) {  ///< likewise
        require_shape_of(value.derived_cast());
        return Semantic::operator=(value);
    }

    /// Called by `noalias(view) = value`: before anything of xtensor, which relies on a resize that does not throw.
    template <class E> MatrixView& assign_xexpression(const xt::xexpression<E>& value) {
        require_shape_of(value.derived_cast());
        return Semantic::assign_xexpression(value);
    }
    /// Called by `noalias(view) += value` with the sum, and by the other operators likewise.
    template <class E> MatrixView& computed_assign(const xt::xexpression<E>& value) {
        require_shape_of(value.derived_cast());
        return Semantic::computed_assign(value);
    }
    /// Called by xtensor before it writes: ShapeError unless it is the shape of the view.
    template <class Shape, class... Layout> void resize(const Shape& shape, const Layout&...) const {
        require_shape(shape);
    }
    /// The shape is fixed; xt::reshape_view(view, shape) shows the same numbers in another.
    template <class... Arguments> void reshape(Arguments&&...) = delete;
    /// Would exchange numbers twice through the same memory.
    friend void swap(MatrixView&, MatrixView&) = delete;

private:
    // Also of `view += value`, which is `view = view + value`: arrays in it may not go together at all.
    template <class E> void require_shape_of(const E& value) const {
        try {
            require_shape(value.shape());
        } catch (const xt::broadcast_error&) {
            throw ShapeError(owner(), "found arrays of shapes that do not broadcast to one, for a matrix ",
                             text(this->shape()));
        }
    }
    template <class Shape> void require_shape(const Shape& found) const {
        const auto& own = this->shape();
        if (std::equal(std::begin(found), std::end(found), own.begin(), own.end(),
                       [](auto a, auto b) { return static_cast<std::size_t>(a) == b; }))
            return;
        throw ShapeError(owner(), "found an array ", text(found), " assigned to a matrix ", text(own));
    }
    std::string owner() const { return name_ ? "'" + *name_ + "': " : std::string(); }
    template <class Shape> static std::string text(const Shape& shape) {
        return dimensions_text(std::vector<Index>(std::begin(shape), std::end(shape)));
    }

    storage_type& storage_impl() noexcept { return memory_; }
    const storage_type& storage_impl() const noexcept { return memory_; }
    friend class xt::xcontainer<MatrixView>;

    storage_type memory_;
    const std::string* name_;
};

/// A MatrixView of a matrix [rows, cols]: the type of T follows from the pointer.
template <class T> MatrixView<T> matrix_view(T* data, Index rows, Index cols) { return {data, rows, cols}; }

}}  // namespace isogloss
