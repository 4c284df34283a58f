cmake_minimum_required(VERSION 3.21)
# Compiles FILE, which must fail with the message its first line expects: "// expect: <regular expression>";
# a first line "// compiles" says the contrary. Needs COMPILER, FLAGS (a file of them) and
# BASE, a header that is included first.
file(STRINGS ${FILE} first LIMIT_COUNT 1)
set(ENV{LC_ALL} C)  # plain quotation marks, English words
execute_process(COMMAND ${COMPILER} @${FLAGS} -include ${BASE} -fsyntax-only ${FILE}
    RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(first STREQUAL "// compiles")
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "${FILE} should compile and does not:\n${said}")
    endif()
elseif(NOT first MATCHES "^// expect: (.+)$")
    message(FATAL_ERROR "${FILE}: the first line is \"${first}\", and should be \"// expect: <regular expression>\" "
        "or \"// compiles\"")
else()
    set(expected "${CMAKE_MATCH_1}")
    if(result EQUAL 0)
        message(FATAL_ERROR "${FILE} compiles and should not")
    elseif(NOT said MATCHES "${expected}")
        message(FATAL_ERROR "${FILE} is refused, but no line of the message matches \"${expected}\":\n${said}")
    endif()
    message("refused, as it should be: ${CMAKE_MATCH_0}")
endif()
