# Tests of the project rather than of its functions: each header by itself, wiring errors at compile time,
# what the smallest program costs to compile, use from outside, the API reference.

# Each header alone and twice, in a unit of its own, and all units in one program: a header that leans on
# another, lacks its guard or defines what is not inline does not build.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/*.hpp)
# The tests of some headers include them first, which shows the same.
foreach(header IN LISTS headers)
    string(REGEX REPLACE "^isogloss/(.*)hpp$" "${CMAKE_CURRENT_SOURCE_DIR}/\\1cpp" test ${header})
    if(EXISTS ${test})
        file(STRINGS ${test} first LIMIT_COUNT 1 REGEX "^#include")
        if(first STREQUAL "#include <${header}>")
            list(REMOVE_ITEM headers ${header})
        endif()
    endif()
endforeach()
foreach(component IN LISTS isogloss_components_left_out)
    list(FILTER headers EXCLUDE REGEX "^isogloss/${component}[/.]")
endforeach()
set(units ${CMAKE_CURRENT_BINARY_DIR}/headers/main.cpp)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/headers/main.cpp CONTENT "int main() {}\n")
foreach(header IN LISTS headers)
    string(REGEX REPLACE "hpp$" "cpp" unit ${CMAKE_CURRENT_BINARY_DIR}/headers/${header})
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include <${header}>\n#include <${header}>\n")
    list(APPEND units ${unit})
endforeach()
add_executable(headers_alone ${units})
target_link_libraries(headers_alone PRIVATE isogloss::isogloss isogloss_warnings)
foreach(component IN LISTS isogloss_components)
    target_link_libraries(headers_alone PRIVATE isogloss::${component})
endforeach()
target_compile_options(headers_alone PRIVATE -O0)
add_test(NAME headers_alone COMMAND headers_alone)

# The compiler by hand, with the flags of a program that uses the library
set(flags ${CMAKE_CURRENT_BINARY_DIR}/flags)
set(directories $<TARGET_PROPERTY:headers_alone,INCLUDE_DIRECTORIES>)
set(definitions $<TARGET_PROPERTY:headers_alone,COMPILE_DEFINITIONS>)
string(REPLACE " " "\n" options "${CMAKE_CXX_FLAGS} ${isogloss_native} ${OpenMP_CXX_FLAGS}")
file(GENERATE OUTPUT ${flags} CONTENT
    "-std=c++20\n\"-I$<JOIN:${directories},\"\n\"-I>\"\n$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},\n-D>>\n${options}\n")

file(GLOB mistakes CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/*.cpp)
foreach(mistake IN LISTS mistakes)
    get_filename_component(name ${mistake} NAME_WE)
    add_test(NAME compile_fail/${name} COMMAND ${CMAKE_COMMAND} -DFILE=${mistake} -DCOMPILER=${CMAKE_CXX_COMPILER}
        -DFLAGS=${flags} -P ${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/expect.cmake)
endforeach()

if(EXISTS ${PROJECT_SOURCE_DIR}/include/isogloss/isogloss.hpp)
    add_test(NAME compile_time COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/compile_time.sh ${CMAKE_CXX_COMPILER} ${flags}
        ${CMAKE_CURRENT_BINARY_DIR}/compile_time.txt)
endif()

if(ISOGLOSS_INSTALL)
    foreach(how IN ITEMS installed subdirectory pkg-config)
        add_test(NAME consumer/${how} COMMAND ${CMAKE_COMMAND} -DHOW=${how} -DSOURCE=${PROJECT_SOURCE_DIR}
            -DBUILD=${PROJECT_BINARY_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/consumer/${how}
            -DCOMPILER=${CMAKE_CXX_COMPILER} -DGENERATOR=${CMAKE_GENERATOR}
            -P ${CMAKE_CURRENT_SOURCE_DIR}/consumer/consume.cmake)
    endforeach()
endif()

foreach(script links architecture)
    tests_in_python(docs/${script} docs/${script}.py ${PROJECT_SOURCE_DIR})
    set_tests_properties(docs/${script} PROPERTIES LABELS docs)
endforeach()
include(docs/programs.cmake)

if(TARGET docs)
    add_test(NAME docs_without_warnings COMMAND ${DOXYGEN_EXECUTABLE} ${isogloss_doxyfile})
endif()

add_test(NAME configure_errors COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR}
    -DWORK=${CMAKE_CURRENT_BINARY_DIR}/configure_errors -DCOMPILER=${CMAKE_CXX_COMPILER}
    -DGENERATOR=${CMAKE_GENERATOR} -P ${CMAKE_CURRENT_SOURCE_DIR}/configure_errors.cmake)
