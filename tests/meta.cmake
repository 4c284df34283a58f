# Tests of the project rather than of its functions: each header by itself, wiring errors at compile time,
# what the smallest program costs to compile, use from outside, the API reference.

# Each header alone and twice, by the front end of the compiler: a header that leans on another or lacks its guard is
# refused. Of what a header includes, the last of the bases below is compiled beforehand. The bases are proved like the
# others, and that one was there before changes nothing, as headers include before they do anything else.
set(headers_bases error random tensor factor graph/graph io/safetensors lds/model)
if(ISOGLOSS_BLAS STREQUAL "none")
    list(REMOVE_ITEM headers_bases factor lds/model)
endif()
set(headers_folder ${CMAKE_CURRENT_BINARY_DIR}/headers)
set(include_folder ${PROJECT_SOURCE_DIR}/include)
file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${include_folder}/*.hpp)
isogloss_without_lapack(headers)
list(TRANSFORM headers REPLACE "^${include_folder}/" "")
list(FILTER headers EXCLUDE REGEX "^isogloss/compiled(_lds)?[.]hpp$")  # src/ compiles these
foreach(component IN LISTS isogloss_components_left_out)
    list(FILTER headers EXCLUDE REGEX "^isogloss/${component}[/.]")
endforeach()

# The unit that includes them all, twice, after <sys/ioctl.h>, whose macros are in the way of headers of LAPACK. What is
# defined there and not inline would be defined twice in a program.
set(all "#include <sys/ioctl.h>\n")
foreach(round IN ITEMS 1 2)
    foreach(header IN LISTS headers)
        string(APPEND all "#include <${header}>\n")
    endforeach()
endforeach()
string(APPEND all "int one_use() { return isogloss::threads(); }\n")  # so that the object holds something of the library
file(CONFIGURE OUTPUT ${headers_folder}/all.cpp CONTENT "${all}")
add_library(headers_all OBJECT ${headers_folder}/all.cpp)
target_link_libraries(headers_all PRIVATE isogloss::isogloss isogloss_warnings)
foreach(component IN LISTS isogloss_components)
    target_link_libraries(headers_all PRIVATE isogloss::${component})
endforeach()
target_compile_options(headers_all PRIVATE -O0)
add_test(NAME headers_inline COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DOBJECT=$<TARGET_OBJECTS:headers_all>
    -P ${CMAKE_CURRENT_SOURCE_DIR}/headers_inline.cmake)

# The compiler by hand, with the flags of a program that uses the library, and of one for another machine.
set(flags ${CMAKE_CURRENT_BINARY_DIR}/flags)
set(portable_flags ${CMAKE_CURRENT_BINARY_DIR}/portable_flags)
set(directories $<TARGET_PROPERTY:headers_all,INCLUDE_DIRECTORIES>)
set(definitions $<TARGET_PROPERTY:headers_all,COMPILE_DEFINITIONS>)
string(REPLACE " " "\n" options "${CMAKE_CXX_FLAGS} ${OpenMP_CXX_FLAGS}")
string(CONCAT portable_options "-std=c++20\n\"-I$<JOIN:${directories},\"\n\"-I>\"\n"
    "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},\n-D>>\n${options}\n")
file(GENERATE OUTPUT ${portable_flags} CONTENT "${portable_options}")
file(GENERATE OUTPUT ${flags} CONTENT "${portable_options}${isogloss_native}\n")

foreach(base IN LISTS headers_bases)
    string(MAKE_C_IDENTIFIER ${base} name)
    set(${name}_base ${headers_folder}/${name}.hxx)
    file(CONFIGURE OUTPUT ${${name}_base} CONTENT "#include <isogloss/${base}.hpp>\n")
    isogloss_below(${include_folder}/isogloss/${base}.hpp ${name}_below)
    add_custom_command(OUTPUT ${${name}_base}.gch
        COMMAND ${CMAKE_CXX_COMPILER} @${flags} -x c++-header ${${name}_base} -o ${${name}_base}.gch
        DEPENDS ${${name}_base} ${${name}_below} ${include_folder}/isogloss/${base}.hpp ${flags} VERBATIM)
endforeach()

set(stamps "")
foreach(header IN LISTS headers)
    string(REGEX REPLACE "hpp$" "cpp" unit ${headers_folder}/${header})
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include <${header}>\n#include <${header}>\n")
    isogloss_below(${include_folder}/${header} below)
    set(before "")
    foreach(base IN LISTS headers_bases)
        string(MAKE_C_IDENTIFIER ${base} name)
        if(${include_folder}/isogloss/${base}.hpp IN_LIST below AND NOT ${include_folder}/${header} IN_LIST ${name}_below)
            set(before ${${name}_base})
        endif()
    endforeach()
    list(TRANSFORM before PREPEND "-include;" OUTPUT_VARIABLE included)
    list(TRANSFORM before APPEND .gch)
    add_custom_command(OUTPUT ${unit}.done
        COMMAND ${CMAKE_CXX_COMPILER} @${flags} -fsyntax-only ${included} ${unit} -MD -MF ${unit}.d -MT ${unit}.done
        COMMAND ${CMAKE_COMMAND} -E touch ${unit}.done
        DEPENDS ${unit} ${before} ${flags} DEPFILE ${unit}.d VERBATIM)
    list(APPEND stamps ${unit}.done)
endforeach()
add_custom_target(headers_alone ALL DEPENDS ${stamps})

file(GLOB mistakes CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/*.cpp)
foreach(mistake IN LISTS mistakes)
    get_filename_component(name ${mistake} NAME_WE)
    add_test(NAME compile_fail/${name} COMMAND ${CMAKE_COMMAND} -DFILE=${mistake} -DCOMPILER=${CMAKE_CXX_COMPILER}
        -DFLAGS=${flags} -DBASE=${graph_graph_base} -P ${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/expect.cmake)
endforeach()

# The kernels for each instruction set for which they have code of their own, in instructions, as the front end alone does
# not check these. Pairs of -march and a macro that the compiler then defines.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(kernels ${headers})
    list(FILTER kernels INCLUDE REGEX "^isogloss/kernel/")
    list(TRANSFORM kernels PREPEND "-include;")
    set(sets sapphirerapids __AVX512FP16__ cooperlake __AVX512BF16__ skylake-avx512 __AVX512BW__ haswell __AVX2__
        x86-64 __SSE2__)
    while(sets)
        list(POP_FRONT sets march macro)
        add_test(NAME instruction_sets/${march} COMMAND ${CMAKE_CXX_COMPILER} @${portable_flags} -march=${march}
            -DREQUIRED=${macro} ${kernels} "$<TARGET_PROPERTY:isogloss_warnings,INTERFACE_COMPILE_OPTIONS>" -Werror -O0 -g0
            -S -o ${CMAKE_CURRENT_BINARY_DIR}/${march}.s ${CMAKE_CURRENT_SOURCE_DIR}/instruction_sets/kernels.cpp
            COMMAND_EXPAND_LISTS)
    endwhile()
    if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
        add_test(NAME instruction_sets/int8 COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/instruction_sets/int8.sh
            ${CMAKE_CURRENT_BINARY_DIR}/int8 ${CMAKE_CXX_COMPILER} @${portable_flags} COMMAND_EXPAND_LISTS)
        add_test(NAME instruction_sets/same_bytes COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/instruction_sets/same_bytes.sh
            ${CMAKE_CURRENT_BINARY_DIR}/same_bytes ${CMAKE_CXX_COMPILER} -std=c++20 -I${PROJECT_SOURCE_DIR}/include)
        set_tests_properties(instruction_sets/same_bytes PROPERTIES TIMEOUT 1800)  # compiles a whole program six times
    endif()
endif()

# Budgets of instructions, with flags of their own.
find_program(ISOGLOSS_VALGRIND valgrind)
find_path(ISOGLOSS_CALLGRIND valgrind/callgrind.h)
if(ISOGLOSS_VALGRIND AND ISOGLOSS_CALLGRIND AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64"
   AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CROSSCOMPILING)
    set(counted ${CMAKE_CURRENT_BINARY_DIR}/instructions)
    set(objects "")
    foreach(unit IN ITEMS kernels models)
        set(source ${CMAKE_CURRENT_SOURCE_DIR}/instructions/${unit}.cpp)
        set(object ${counted}_${unit}.o)
        # Parameters: by default whether a function is inlined depends on the size of all others.
        add_custom_command(OUTPUT ${object}
            COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${CMAKE_CXX_COMPILER} -std=c++20 -O3 -march=haswell -ffp-contract=off
                -DNDEBUG -DXTENSOR_USE_XSIMD -DISOGLOSS_NO_BLAS -I${include_folder}
                --param=large-unit-insns=10000000 --param=ipa-cp-large-unit-insns=10000000
                -c ${source} -o ${object} -MD -MF ${object}.d -MT ${object}
            DEPENDS ${source} DEPFILE ${object}.d VERBATIM)
        list(APPEND objects ${object})
    endforeach()
    add_custom_command(OUTPUT ${counted} COMMAND ${CMAKE_CXX_COMPILER} ${objects} -o ${counted} DEPENDS ${objects} VERBATIM)
    add_custom_target(instructions_counted ALL DEPENDS ${counted})
    tests_in_python(instructions instructions/budgets.py ${ISOGLOSS_VALGRIND} ${counted} ${counted}.profile
        "GNU ${CMAKE_CXX_COMPILER_VERSION}")
    set_tests_properties(instructions PROPERTIES SKIP_RETURN_CODE 77)
else()
    message(STATUS "isogloss: no test instructions, valgrind was not found or this is not g++ on x86-64 (bash .ci/install full)")
endif()

if(EXISTS ${PROJECT_SOURCE_DIR}/include/isogloss/isogloss.hpp)
    add_test(NAME compile_time COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/compile_time.sh ${CMAKE_CXX_COMPILER} ${flags}
        ${CMAKE_CURRENT_BINARY_DIR}/compile_time.txt)
endif()

# The single header, as a program of two units takes it.
if(tests_python)
    set(single_header ${CMAKE_CURRENT_BINARY_DIR}/merged/isogloss.hpp)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/merged)
    isogloss_below(${include_folder}/isogloss/isogloss.hpp merged)
    add_custom_command(OUTPUT ${single_header}
        COMMAND ${tests_python} ${PROJECT_SOURCE_DIR}/tools/single_header.py > ${single_header}
        DEPENDS ${merged} ${PROJECT_SOURCE_DIR}/tools/single_header.py VERBATIM)
    add_executable(single_header consumer/single_header/main.cpp consumer/single_header/other.cpp ${single_header})
    target_include_directories(single_header BEFORE PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/merged)
    target_link_libraries(single_header PRIVATE isogloss::isogloss isogloss_warnings)
    target_compile_options(single_header PRIVATE -O1)
    add_test(NAME single_header COMMAND single_header)
    set_tests_properties(single_header PROPERTIES PASS_REGULAR_EXPRESSION "^[0-9.]+ 1.09861229")  # ln 3
else()
    tests_in_python(single_header "")
endif()

if(ISOGLOSS_INSTALL)
    set(ways installed subdirectory pkg-config package without_blas)
    if(TARGET isogloss_compiled)
        list(APPEND ways compiled)
    endif()
    if(isogloss_has_sets)
        list(APPEND ways instruction_sets)
    endif()
    foreach(how IN LISTS ways)
        add_test(NAME consumer/${how} COMMAND ${CMAKE_COMMAND} -DHOW=${how} -DSOURCE=${PROJECT_SOURCE_DIR}
            -DBUILD=${PROJECT_BINARY_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/consumer/${how}
            -DCOMPILER=${CMAKE_CXX_COMPILER} -DGENERATOR=${CMAKE_GENERATOR}
            -P ${CMAKE_CURRENT_SOURCE_DIR}/consumer/consume.cmake)
    endforeach()
endif()

if(ISOGLOSS_CCACHE_PROGRAM)
    add_test(NAME ccache COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/ccache
        -DCOMPILER=${CMAKE_CXX_COMPILER} -DGENERATOR=${CMAKE_GENERATOR} -P ${CMAKE_CURRENT_SOURCE_DIR}/ccache.cmake)
endif()

# The port of vcpkg, with plain CMake in place of vcpkg.
if(ISOGLOSS_INSTALL)
    add_test(NAME packaging/vcpkg COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR}
        -DWORK=${CMAKE_CURRENT_BINARY_DIR}/packaging/vcpkg -DCOMPILER=${CMAKE_CXX_COMPILER} -DGENERATOR=${CMAKE_GENERATOR}
        -P ${CMAKE_CURRENT_SOURCE_DIR}/packaging/vcpkg.cmake)
endif()

tests_in_python(packaging/home_page packaging/home_page.py ${PROJECT_SOURCE_DIR})
tests_in_python(packaging/forms packaging/forms.py ${PROJECT_SOURCE_DIR})

# Left out where its program is not there; .ci/install brings Conan and no cross compiler.
find_program(ISOGLOSS_CONAN conan)
set(isogloss_conan ${ISOGLOSS_CONAN})
if(NOT ISOGLOSS_CONAN AND EXISTS ${PROJECT_SOURCE_DIR}/build/python/bin/conan)
    # Not bin/conan: its first line has the place where the environment was made, and a checkout may be moved.
    set(isogloss_conan ${PROJECT_SOURCE_DIR}/build/python/bin/python -m conans.conan)
endif()
if(isogloss_conan)
    add_test(NAME packaging/conan COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/packaging/conan.sh ${PROJECT_SOURCE_DIR}
        ${CMAKE_CURRENT_BINARY_DIR}/packaging/conan ${isogloss_conan})
else()
    message(STATUS "isogloss: no test of the Conan recipe, conan was not found (bash .ci/install full)")
endif()
find_program(ISOGLOSS_AARCH64 aarch64-linux-gnu-g++)
find_program(ISOGLOSS_QEMU_AARCH64 qemu-aarch64)
if(ISOGLOSS_AARCH64 AND ISOGLOSS_QEMU_AARCH64 AND EXISTS /usr/include/catch2/catch.hpp)
    add_test(NAME instruction_sets/arm COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/instruction_sets/arm.sh ${PROJECT_SOURCE_DIR}
        ${CMAKE_CURRENT_BINARY_DIR}/arm)
endif()
if(ISOGLOSS_AARCH64 AND ISOGLOSS_QEMU_AARCH64 AND EXISTS /usr/lib/aarch64-linux-gnu/libopenblas.so)
    add_test(NAME packaging/aarch64 COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/packaging/aarch64.sh ${PROJECT_SOURCE_DIR}
        ${CMAKE_CURRENT_BINARY_DIR}/packaging/aarch64)
    set_tests_properties(packaging/aarch64 PROPERTIES PASS_REGULAR_EXPRESSION "perplexity before training: 4[.]99")
else()
    message(STATUS "isogloss: no test of another processor, its compiler, qemu or OpenBLAS was not found (docs/building.md)")
endif()

find_program(ISOGLOSS_MPICH_CXX mpicxx.mpich)
find_program(ISOGLOSS_MPICH_RUN mpirun.mpich)
if(TARGET isogloss::mpi AND ISOGLOSS_MPICH_CXX AND ISOGLOSS_MPICH_RUN)
    add_test(NAME packaging/mpich COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/packaging/mpich.sh ${ISOGLOSS_MPICH_CXX}
        ${ISOGLOSS_MPICH_RUN} ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/packaging/mpich)
else()
    message(STATUS "isogloss: no test with MPICH, its compiler wrapper or launcher was not found (apt-get install libmpich-dev mpich)")
endif()

find_program(ISOGLOSS_MINGW x86_64-w64-mingw32-g++-posix)
if(ISOGLOSS_MINGW AND EXISTS /usr/include/xflens)
    add_test(NAME packaging/without_posix COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/packaging/without_posix.sh ${PROJECT_SOURCE_DIR}
        ${CMAKE_CURRENT_BINARY_DIR}/packaging/without_posix)
else()
    message(STATUS "isogloss: no test without POSIX, the cross compiler for Windows was not found (docs/building.md)")
endif()

foreach(script links architecture)
    tests_in_python(docs/${script} docs/${script}.py ${PROJECT_SOURCE_DIR})
endforeach()
tests_in_python(docs/tables ../programs/language_model/tables.py report --check)
tests_in_python(docs/trials ../programs/language_model/tables.py trials --check)
tests_in_python(docs/user_table ../programs/language_model/user.py report --check)
tests_in_python(docs/precision_table ../programs/language_model/tables.py compare ptb-small --check --page ${PROJECT_SOURCE_DIR}/docs/loss/sampled_gradients.md
                --results ${PROJECT_SOURCE_DIR}/programs/language_model/results/exact.csv ${PROJECT_SOURCE_DIR}/programs/language_model/results/sampled.csv)
tests_in_python(docs/benchmark_results ../benchmarks/results/tables.py --check)
tests_in_python(docs/synthetic_table ../programs/synthetic/table.py --print-only --check --parts minibatch --seconds 30
                --results ${PROJECT_SOURCE_DIR}/programs/synthetic/results/minibatch.csv --page ${PROJECT_SOURCE_DIR}/docs/lab/synthetic_table.md)
tests_in_python(docs/synthetic_one_setting ../programs/synthetic/table.py --print-only --check --parts "one setting" --seconds 6
                --results ${PROJECT_SOURCE_DIR}/programs/synthetic/results/one.csv --page ${PROJECT_SOURCE_DIR}/docs/lab/synthetic_one_setting.md)
tests_in_python(docs/taggers ../programs/lds_text/tables.py --check
                --results ${PROJECT_SOURCE_DIR}/programs/lds_text/results/taggers.csv --page ${PROJECT_SOURCE_DIR}/docs/lab/taggers.md)
set(logs ${PROJECT_SOURCE_DIR}/programs/lds_text/results/rnn_)
tests_in_python(docs/rnn_table ../programs/lds_text/rnn_table.py ${logs}system.csv ${logs}random1.csv
                --names "system's start" "random start, seed 1" --page ${PROJECT_SOURCE_DIR}/docs/lab/lds.md)
tests_in_python(docs/recipes ../programs/language_model/recipes.py report --check)
set(results ${PROJECT_SOURCE_DIR}/programs/language_model/results)
tests_in_python(docs/compared_rows ../programs/language_model/tables.py compare ptb-small --check --page ${PROJECT_SOURCE_DIR}/docs/lab/language_model_results.md
                --results ${results}/one_cycle.csv ${results}/printed.csv)
tests_in_python(docs/updates ../programs/language_model/updates.py report --check)
tests_in_python(docs/pieces ../programs/language_model/pieces.py report --check)
tests_in_python(docs/search ../programs/language_model/search_report.py --check)
include(docs/programs.cmake)

if(TARGET docs)
    add_test(NAME docs_without_warnings COMMAND ${isogloss_reference})
    set_tests_properties(docs_without_warnings PROPERTIES FIXTURES_SETUP reference)
endif()
if(TARGET site)
    add_test(NAME docs/site_builds COMMAND ${isogloss_site})
    set_tests_properties(docs/site_builds PROPERTIES FIXTURES_REQUIRED reference FIXTURES_SETUP site)
    set(of_site docs/site)
    tests_in_python(docs/site docs/site.py ${isogloss_site_folder} ${PROJECT_SOURCE_DIR})
    find_program(ISOGLOSS_CHROMIUM NAMES chromium chromium-browser google-chrome)
    if(ISOGLOSS_CHROMIUM)
        list(APPEND of_site docs/site_in_browser)
        tests_in_python(docs/site_in_browser docs/browser.py ${isogloss_site_folder} ${ISOGLOSS_CHROMIUM})
    else()
        message(STATUS "isogloss: no test docs/site_in_browser, chromium was not found (bash .ci/install browser)")
    endif()
    set_tests_properties(${of_site} PROPERTIES FIXTURES_REQUIRED site)
endif()

# The page of examples/browser, built and driven in Chromium.
find_program(ISOGLOSS_EMXX em++)
find_program(ISOGLOSS_CHROMIUM NAMES chromium chromium-browser google-chrome)
if(ISOGLOSS_EMXX AND ISOGLOSS_CHROMIUM AND ISOGLOSS_PYTHON AND TARGET browser AND NOT isogloss_sanitized)
    add_test(NAME examples/page COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/examples/page.sh ${CMAKE_CURRENT_BINARY_DIR}/page
        $<TARGET_FILE:browser> ${ISOGLOSS_CHROMIUM})
else()
    message(STATUS "isogloss: no test examples/page, em++ or chromium was not found (bash .ci/install full browser)")
endif()

add_test(NAME configure_errors COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR}
    -DWORK=${CMAKE_CURRENT_BINARY_DIR}/configure_errors -DCOMPILER=${CMAKE_CXX_COMPILER}
    -DGENERATOR=${CMAKE_GENERATOR} -P ${CMAKE_CURRENT_SOURCE_DIR}/configure_errors.cmake)
