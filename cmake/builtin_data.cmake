# SPDX-License-Identifier: Apache-2.0
# The shipped text becomes part of the library, so that builtin:quiz and builtin:devil are found
# wherever the binary runs. Included by CMakeLists.txt it adds one generated source per file; run
# with -P (INPUT, OUTPUT, NAME) it writes that source.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${INPUT} digits HEX)
  string(REGEX REPLACE "(................................)" "\\1\n    " digits "${digits}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," digits "${digits}")
  file(WRITE ${OUTPUT} "#include \"data/builtin.h\"\n"
                       "const unsigned char builtin_${NAME}_bytes[] = {\n    ${digits}};\n"
                       "const size_t builtin_${NAME}_length = sizeof builtin_${NAME}_bytes;\n")
  return()
endif()

foreach(name quiz devil)
  set(input ${CMAKE_SOURCE_DIR}/scenarios/data/${name}.tsv)
  set(output ${CMAKE_BINARY_DIR}/generated/builtin_${name}.c)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DNAME=${name} -P
            ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${input} ${CMAKE_CURRENT_LIST_FILE}
    VERBATIM)
  target_sources(twinstep_data PRIVATE ${output})
endforeach()
