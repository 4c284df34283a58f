# isogloss::compiled, the core compiled once for float and double (include/isogloss/compiled.hpp), and how the project's
# own programs are built against it. isogloss_core is what they link.
set(isogloss_core isogloss::isogloss)
set(isogloss_sanitized OFF)
if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_CXX_FLAGS_DEBUG MATCHES "-fsanitize=")
    set(isogloss_sanitized ON)
endif()

# isogloss_core_library(SUFFIX FLAGS...): isogloss::compiled and its name after that, for one instruction set.
function(isogloss_core_library suffix)
    set(core isogloss_compiled${suffix})
    set(sources check factor graph loss node sparse_node update)
    list(TRANSFORM sources PREPEND src/)
    list(TRANSFORM sources APPEND .cpp)
    add_library(${core} STATIC ${sources})
    add_library(isogloss::compiled${suffix} ALIAS ${core})
    target_link_libraries(${core} PUBLIC isogloss PRIVATE $<BUILD_INTERFACE:isogloss_warnings>)
    target_compile_definitions(${core} PUBLIC ISOGLOSS_COMPILED)
    foreach(component IN ITEMS io lds)
        if(TARGET isogloss_${component})
            string(TOUPPER ${component} name)
            target_sources(${core} PRIVATE src/${component}.cpp)
            target_link_libraries(${core} PRIVATE $<BUILD_INTERFACE:isogloss_${component}>)
            target_compile_definitions(${core} PUBLIC ISOGLOSS_COMPILED_${name})
        endif()
    endforeach()
    # A program and the library in it agree on the instruction set: memory is laid out by its width.
    target_compile_options(${core} PUBLIC ${ARGN})
    set_target_properties(${core} PROPERTIES EXPORT_NAME compiled${suffix})
    # So that a shared library may link it, too.
    if(NOT DEFINED CMAKE_POSITION_INDEPENDENT_CODE)
        set_target_properties(${core} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
endfunction()

if(ISOGLOSS_COMPILED)
    isogloss_core_library("" ${isogloss_native})
    set(isogloss_cores isogloss_compiled)
    foreach(set IN LISTS ISOGLOSS_INSTRUCTION_SETS)
        isogloss_set_flags(flags ${set})
        isogloss_core_library(_${set} ${flags})
        list(APPEND isogloss_cores isogloss_compiled_${set})
    endforeach()
    set(isogloss_core isogloss::compiled)
endif()

# isogloss_links_core(TARGET OPTIMISATION): links the core, compiled where there is one. Its library comes first in the
# link, so that a function that both it and the program hold is the library's, fully optimised. The program's own code
# is then compiled with OPTIMISATION, and under the sanitizers, where it is run on little, with -O0.
function(isogloss_links_core target optimisation)
    target_link_libraries(${target} PRIVATE ${isogloss_core})
    if(NOT ISOGLOSS_COMPILED)
        return()
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
        target_link_options(${target} PRIVATE
            LINKER:--whole-archive $<TARGET_FILE:isogloss_compiled> LINKER:--no-whole-archive)
    endif()
    if(isogloss_sanitized)
        set(optimisation -O0)
    endif()
    target_compile_options(${target} PRIVATE ${optimisation})
endfunction()
