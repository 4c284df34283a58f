/// @file machine.hpp  The environment of a benchmark: the processor, BLAS and the kernels it chose.
#pragma once

#include <cstdlib>
#include <cstring>
#include <isogloss/isogloss.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

// Present in OpenBLAS, absent elsewhere, like those of isogloss/threads.hpp.
extern "C" [[gnu::weak]] char* openblas_get_config(void);

namespace machine {

/// Vendor, family, model and name as reported by the CPUID instruction; "unknown" without it.
inline std::string processor() {
#if defined(__x86_64__) || defined(__i386__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    const auto letters = [](auto... registers) {
        std::string text;
        for (const unsigned r : {registers...}) {
            char four[4];
            std::memcpy(four, &r, 4);
            text.append(four, 4);
        }
        return text;
    };
    if (!__get_cpuid(0, &a, &b, &c, &d)) return "unknown";
    std::string text = letters(b, d, c);
    __get_cpuid(1, &a, &b, &c, &d);
    unsigned family = a >> 8 & 15, model = a >> 4 & 15;
    if (family == 6 || family == 15) model += a >> 12 & 0xf0;
    if (family == 15) family += a >> 20 & 255;
    text += " family " + std::to_string(family) + " model " + std::to_string(model);
    std::string name;
    for (const unsigned leaf : {0x80000002u, 0x80000003u, 0x80000004u})
        if (__get_cpuid(leaf, &a, &b, &c, &d)) name += letters(a, b, c, d);
    name.resize(std::strlen(name.c_str()));  // padded with zeros
    name.erase(0, name.find_first_not_of(' '));
    return name.empty() ? text : text + ", " + name;
#else
    return "unknown";
#endif
}

/// Why OpenBLAS runs kernels of another processor than this one, in a sentence or two; empty if it does not: it is told
/// to by the environment, or is too old to know this one and takes those for SSE3.
inline std::string warning() {
    std::string found, names, sentences;
    if (openblas_get_corename && openblas_get_corename() == std::string_view("Prescott") &&
        sizeof(isogloss::kernel::Lanes<float>) > 16)
        sentences =
            "isogloss benchmarks: OpenBLAS runs its Prescott kernels, which use SSE3 alone, and products in "
            "float take "
            "several times as long as with those for wider registers; set OPENBLAS_CORETYPE to the nearest "
            "processor that it knows, such as Haswell, SkylakeX or SapphireRapids.";
    for (const std::string name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}) {
        const char* const value = std::getenv(name.c_str());
        if (!value || !*value) continue;
        const std::string_view before = found.empty() ? "" : " and ";
        found.append(before).append(name).append("=").append(value);
        names.append(before).append(name);
    }
    if (found.empty()) return sentences;
    return sentences + (sentences.empty() ? "" : " ") + "isogloss benchmarks: found " + found +
           " in the environment; OpenBLAS takes its kernels or their block sizes from there and not from "
           "the processor, so times, floors and ratios may be those of another machine; unset " +
           names + ".";
}

/// Pairs of name and value: everything about machine and program that figures depend on.
inline std::vector<std::pair<std::string, std::string>> context() {
    const bool open = openblas_get_config && openblas_get_corename;
    std::vector<std::pair<std::string, std::string>> pairs{
        {"processor", processor()},
        {"hardware_threads", std::to_string(std::thread::hardware_concurrency())},
        {"threads", std::to_string(isogloss::threads())},
        {"blas", open ? openblas_get_config() : "unknown, not OpenBLAS"},
        {"blas_kernels", open ? openblas_get_corename() : "unknown"},
        {"blas_parallel", openblas_get_parallel ? std::to_string(openblas_get_parallel()) : "unknown"},
        {"lanes", std::to_string(isogloss::kernel::lane_count<isogloss::kernel::Lanes<float>>)},
        {"bf16", isogloss::kernel::bf16_micro_name()},
        {"precision_automatic",
         isogloss::fastest_precision<float>() == isogloss::Precision::bf16 ? "bf16" : "full"},
#ifdef __VERSION__
        {"compiler", __VERSION__},
#endif
    };
    if (const std::string sentence = warning(); !sentence.empty()) pairs.emplace_back("warning", sentence);
    return pairs;
}

}  // namespace machine
