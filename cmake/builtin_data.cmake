# SPDX-License-Identifier: Apache-2.0
# The shipped text becomes part of the library, so that builtin:quiz and builtin:devil are found
# wherever the binary runs. Included by CMakeLists.txt it adds one generated source per file; run
# with -P (INPUT, OUTPUT, NAME) it writes that source.
if(CMAKE_SCRIPT_MODE_FILE)
  include(${CMAKE_CURRENT_LIST_DIR}/bytes.cmake)
  twinstep_literal(literal ${INPUT})
  file(WRITE ${OUTPUT} "#include \"data/builtin.h\"\n"
                       "const unsigned char builtin_${NAME}_bytes[] =\n    ${literal};\n"
                       "const size_t builtin_${NAME}_length = sizeof builtin_${NAME}_bytes - 1;\n")
  return()
endif()

foreach(name quiz devil)
  set(input ${CMAKE_SOURCE_DIR}/scenarios/data/${name}.tsv)
  set(output ${CMAKE_BINARY_DIR}/generated/builtin_${name}.c)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DNAME=${name} -P
            ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${input} ${CMAKE_CURRENT_LIST_FILE} ${CMAKE_CURRENT_LIST_DIR}/bytes.cmake
    VERBATIM)
  twinstep_has_literals(${output})
  target_sources(twinstep_data PRIVATE ${output})
endforeach()
