/// @file compiled.hpp  The core compiled once, for float and double: declared here, instantiated in src/.
///
/// A program that links isogloss::compiled includes this header, directly or through isogloss.hpp, and uses the
/// templates below from that library instead of instantiating them in each of its own files. Without
/// ISOGLOSS_COMPILED, which the target defines, the header declares nothing and everything stays header-only.
///
/// Each list corresponds to one room and one file of src/. A class added to a room is added to its list; a class
/// missing from the list is instantiated where it is used, as usual.
#pragma once

#include <isogloss/check.hpp>
#include <isogloss/closed_form/concatenated_softmax.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/node/gnn.hpp>
#include <isogloss/node/leaky_rnn.hpp>
#include <isogloss/node/sparse_rnn.hpp>
#include <isogloss/update/dynamic.hpp>
#include <isogloss/update/riemannian/alternating.hpp>
#include <isogloss/update/riemannian/dynamic.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <isogloss/update/riemannian/start_at_frequencies.hpp>

#ifndef ISOGLOSS_NO_BLAS  // these call LAPACK
#include <isogloss/factor.hpp>
#include <isogloss/geometry/principal_angles.hpp>
#include <isogloss/geometry/principal_components.hpp>
#include <isogloss/geometry/subspace_distance.hpp>
#include <isogloss/geometry/subspace_monitor.hpp>
#endif

// `make` is `template` in src/, `extern template` everywhere else.

#ifdef ISOGLOSS_NO_BLAS
#define ISOGLOSS_COMPILED_FACTOR(make, T)
#else
#define ISOGLOSS_COMPILED_FACTOR(make, T)                                                      \
    make Tensor<T, 2> dense::orthonormal_columns<T>(MatrixRef<const T>, const char*);          \
    make Tensor<T, 1> dense::singular_values<T>(const Tensor<T, 2>&, const char*);             \
    make dense::Svd<T> dense::thin_svd<T>(const Tensor<T, 2>&, const char*);                   \
    make dense::SymmetricEigen<T> dense::symmetric_eigen<T>(const Tensor<T, 2>&, const char*); \
    make dense::Schur<T> dense::schur<T>(const Tensor<T, 2>&, const char*);                    \
    make Tensor<T, 2> dense::solve<T>(const Tensor<T, 2>&, const Tensor<T, 2>&, const char*);  \
    make std::vector<double> principal_angles<T>(MatrixRef<const T>, MatrixRef<const T>);      \
    make class SubspaceMonitor<T>;                                                             \
    make PrincipalComponents principal_components<T>(MatrixRef<const T>, Index);               \
    make double subspace_distance<T>(MatrixRef<const T>, MatrixRef<const T>);
#endif

#define ISOGLOSS_COMPILED_GRAPH(make, T)                                                                   \
    make void gemm<T>(T, MatrixRef<const T>, MatrixRef<const T>, T, MatrixRef<T>);                         \
    make struct Parameter<T>;                                                                              \
    make class Parameters<T>;                                                                              \
    make struct graph::Store<T>;                                                                           \
    make class Setup<T>;                                                                                   \
    make class UnitsBuilder<T>;                                                                            \
    make class Pass<T>;                                                                                    \
    make class Forward<T>;                                                                                 \
    make class Backward<T, Gradient>;                                                                      \
    make class Backward<T, Modulus>;                                                                       \
    make void graph::add_term<T>(graph::Store<T>&, const graph::UnitsRecord<T>&, graph::Source<T>&, Index, \
                                 Index, Index, T);                                                         \
    make void graph::add_term_to_weight<T>(graph::Store<T>&, const graph::UnitsRecord<T>&,                 \
                                           const graph::Source<T>&, MatrixRef<const T>);                   \
    make class graph::Addition<T>;                                                                         \
    make class graph::Builder<T>;                                                                          \
    make class graph::Runner<T>;                                                                           \
    make void graph::Runner<T>::backward<Gradient>(const graph::LossRecord&, int);                         \
    make void graph::Runner<T>::backward<Modulus>(const graph::LossRecord&, int);                          \
    make class Graph<T>;                                                                                   \
    make void Graph<T>::backward<Gradient>(Loss<T>, Seq<T>);                                               \
    make void Graph<T>::backward<Modulus>(Loss<T>, Seq<T>);

#define ISOGLOSS_COMPILED_NODE(make, T, Node) \
    make struct Node<T>;                      \
    make struct graph::NodeOf<T, Node<T>>;

#define ISOGLOSS_COMPILED_NODES(make, T)          \
    ISOGLOSS_COMPILED_NODE(make, T, Concatenate)  \
    ISOGLOSS_COMPILED_NODE(make, T, Dropout)      \
    ISOGLOSS_COMPILED_NODE(make, T, Embedding)    \
    ISOGLOSS_COMPILED_NODE(make, T, Gru)          \
    ISOGLOSS_COMPILED_NODE(make, T, Linear)       \
    ISOGLOSS_COMPILED_NODE(make, T, Lstm)         \
    ISOGLOSS_COMPILED_NODE(make, T, Nonlinearity) \
    ISOGLOSS_COMPILED_NODE(make, T, Qrnn)         \
    ISOGLOSS_COMPILED_NODE(make, T, Rhn)          \
    ISOGLOSS_COMPILED_NODE(make, T, Rnn)          \
    ISOGLOSS_COMPILED_NODE(make, T, Softmax)      \
    ISOGLOSS_COMPILED_NODE(make, T, Sum)          \
    ISOGLOSS_COMPILED_NODE(make, T, TiedSoftmax)  \
    ISOGLOSS_COMPILED_NODE(make, T, TotalLoss)    \
    ISOGLOSS_COMPILED_NODE(make, T, check::Probe)

#define ISOGLOSS_COMPILED_SPARSE_NODES(make, T)   \
    make struct SparseRecurrent<T, true, true>;   \
    make struct SparseRecurrent<T, false, true>;  \
    make struct SparseRecurrent<T, true, false>;  \
    make struct SparseRecurrent<T, false, false>; \
    ISOGLOSS_COMPILED_NODE(make, T, Glnn)         \
    ISOGLOSS_COMPILED_NODE(make, T, Gnn)          \
    ISOGLOSS_COMPILED_NODE(make, T, LeakyRnn)     \
    ISOGLOSS_COMPILED_NODE(make, T, SparseRnn)

#define ISOGLOSS_COMPILED_LOSSES(make, T)               \
    make class ConcatenatedSoftmax<T>;                  \
    make class FusedSoftmax<T>;                         \
    ISOGLOSS_COMPILED_NODE(make, T, AugmentedLoss)      \
    ISOGLOSS_COMPILED_NODE(make, T, CrossEntropy)       \
    ISOGLOSS_COMPILED_NODE(make, T, GaussianLikelihood) \
    ISOGLOSS_COMPILED_NODE(make, T, SquaredError)

#define ISOGLOSS_COMPILED_UPDATES(make, T) \
    make class Sgd<T>;                     \
    make class AveragedSgd<T>;             \
    make class WeightAverage<T>;           \
    make class DynamicUpdate<T>;           \
    make class RiemannianDynamic<T>;       \
    make class Adam<T>;                    \
    make class UnitMetric<T>;              \
    make class TableMetric<T>;             \
    make class EdgeMetric<T>;              \
    make class SearchStep<T>;              \
    make class AlternatingTraining<T>;     \
    make class Riemannian<T>;

#define ISOGLOSS_COMPILED_SUBJECTS(make, T) make struct check::detail::Subject<T>;

/// Not of one scalar type: the laws try a model in both.
#define ISOGLOSS_COMPILED_LAWS(make)                                                            \
    make std::vector<check::Breach> check::broken_laws<check::Model>(check::Model,              \
                                                                     const check::LawOptions&); \
    make std::string check::laws<check::Model>(check::Model, const check::LawOptions&);

/// All of them for one scalar type.
#define ISOGLOSS_COMPILED_CORE(make, T)     \
    ISOGLOSS_COMPILED_FACTOR(make, T)       \
    ISOGLOSS_COMPILED_GRAPH(make, T)        \
    ISOGLOSS_COMPILED_NODES(make, T)        \
    ISOGLOSS_COMPILED_SPARSE_NODES(make, T) \
    ISOGLOSS_COMPILED_LOSSES(make, T)       \
    ISOGLOSS_COMPILED_UPDATES(make, T)      \
    ISOGLOSS_COMPILED_SUBJECTS(make, T)

#ifdef ISOGLOSS_COMPILED
namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {
ISOGLOSS_COMPILED_CORE(extern template, float)
ISOGLOSS_COMPILED_CORE(extern template, double)
ISOGLOSS_COMPILED_LAWS(extern template)
}}  // namespace isogloss
#endif
