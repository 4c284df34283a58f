# isogloss_component(NAME [PACKAGE VERSION DEBIAN TARGET]): a part of the library beside the core that is
# asked for by name, in CMake as isogloss::NAME, and that alone needs PACKAGE, where it needs one.
macro(isogloss_component name)
    if("${name}" IN_LIST ISOGLOSS_COMPONENTS)
        add_library(isogloss_${name} INTERFACE)
        add_library(isogloss::${name} ALIAS isogloss_${name})
        target_link_libraries(isogloss_${name} INTERFACE isogloss)
        set_target_properties(isogloss_${name} PROPERTIES EXPORT_NAME ${name})
        if(${ARGC} GREATER 1)
            isogloss_find(${ARGV1} ${ARGV2} ${ARGV3}
                "\nOr without it: leave ${name} out of ISOGLOSS_COMPONENTS (now: ${ISOGLOSS_COMPONENTS}).")
            target_link_libraries(isogloss_${name} INTERFACE ${ARGV4})
            set(isogloss_${name}_dependency "find_dependency(${ARGV1})\n")
            set(isogloss_${name}_requires ", ${ARGV1}")  # pkg-config's name of it
        endif()
        list(APPEND isogloss_components ${name})
    else()
        list(APPEND isogloss_components_left_out ${name})
    endif()
endmacro()
# isogloss_switch(OPTION): sets `switch` in the caller: what an option is that may be ON, OFF or a LIST of names.
function(isogloss_switch option)
    string(TOUPPER "${${option}}" value)
    if(value MATCHES "^(ON|TRUE|YES|Y|1)$")
        set(switch ON PARENT_SCOPE)
    elseif(value MATCHES "^(OFF|FALSE|NO|N|0|)$")
        set(switch OFF PARENT_SCOPE)
    else()
        set(switch LIST PARENT_SCOPE)
    endif()
endfunction()

# isogloss_wanted(OPTION NAME): sets `wanted` in the caller: whether such an option asks for this name.
function(isogloss_wanted option name)
    isogloss_switch(${option})
    if(switch STREQUAL "ON" OR name IN_LIST ${option})
        set(wanted TRUE PARENT_SCOPE)
    else()
        set(wanted FALSE PARENT_SCOPE)
    endif()
endfunction()

# isogloss_refuse_unknown(OPTION KNOWN NAMES...): an error for a name that is none of those known.
function(isogloss_refuse_unknown option known)
    foreach(name IN LISTS ARGN)
        if(NOT name IN_LIST known)
            list(JOIN known ", " known)
            message(FATAL_ERROR "isogloss: ${option} names '${name}', expected a list of some of: ${known}.\n"
                "Separate names by semicolons: -D${option}=\"a;b\"")
        endif()
    endforeach()
endfunction()

set(isogloss_components "")
set(isogloss_components_left_out "")
