# SPDX-License-Identifier: Apache-2.0
# The shipped models become part of the library, so that builtin:base is found wherever the binary
# runs. Included by CMakeLists.txt it adds one generated source; run with -P (FOLDER, OUTPUT) it
# writes that source: every scenarios/models/NAME/FILE in the order of its path.
if(CMAKE_SCRIPT_MODE_FILE)
  include(${CMAKE_CURRENT_LIST_DIR}/bytes.cmake)
  file(GLOB inputs RELATIVE ${FOLDER} ${FOLDER}/*/*)
  list(SORT inputs)
  set(arrays "")
  set(rows "")
  set(number 0)
  foreach(input ${inputs})
    twinstep_literal(literal ${FOLDER}/${input})
    string(APPEND arrays "static const unsigned char bytes_${number}[] =\n    ${literal};\n")
    string(APPEND rows "    {\"builtin:${input}\", bytes_${number}, sizeof bytes_${number} - 1},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(WRITE ${OUTPUT} "#include \"checkpoints/shipped.h\"\n${arrays}"
                       "const struct shipped_file shipped_files[] = {\n${rows}"
                       "    {NULL, NULL, 0}};\n")
  return()
endif()

file(GLOB models CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/scenarios/models/*/*)
set(output ${CMAKE_BINARY_DIR}/generated/builtin_models.c)
add_custom_command(
  OUTPUT ${output}
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_SOURCE_DIR}/scenarios/models -DOUTPUT=${output} -P
          ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${models} ${CMAKE_CURRENT_LIST_FILE}
          ${CMAKE_CURRENT_LIST_DIR}/bytes.cmake
  VERBATIM)
twinstep_has_literals(${output})
target_sources(twinstep_checkpoints PRIVATE ${output})
