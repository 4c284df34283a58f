# OBJECT includes all headers. A symbol of the library that it defines strongly is not inline, and two files that include
# its header would not link. The name of a specialisation of a template begins with its type. Needs NM.
execute_process(COMMAND ${NM} -C ${OBJECT} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
if(NOT symbols MATCHES " [Wu] isogloss::")
    message(FATAL_ERROR "${OBJECT} holds nothing of the library, so it proves nothing")
endif()
string(REGEX MATCHALL "[^\n]* [ABCDGRST] [^\n]*isogloss::[^\n]*" strong "${symbols}")
if(strong)
    list(JOIN strong "\n" strong)
    message(FATAL_ERROR "Defined in a header and not inline:\n${strong}")
endif()
