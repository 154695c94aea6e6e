# SPDX-License-Identifier: Apache-2.0
# The catalogue becomes part of the binary, so that `twinstep demo` and `twinstep suite` need no
# file. Included by CMakeLists.txt it adds one generated source; run with -P (FOLDER, OUTPUT) it
# writes that source: every *.yaml of scenarios/catalog and of its folders, in the order of its name.
if(CMAKE_SCRIPT_MODE_FILE)
  include(${CMAKE_CURRENT_LIST_DIR}/bytes.cmake)
  file(GLOB inputs ${FOLDER}/*.yaml ${FOLDER}/*/*.yaml)
  list(SORT inputs COMPARE FILE_BASENAME)
  set(arrays "")
  set(rows "")
  set(number 0)
  foreach(input ${inputs})
    get_filename_component(name ${input} NAME_WE)
    twinstep_literal(literal ${input})
    string(APPEND arrays "static const unsigned char text_${number}[] =\n    ${literal};\n")
    string(APPEND rows "    {\"${name}\", text_${number}, sizeof text_${number} - 1},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(WRITE ${OUTPUT} "#include \"cli/catalog.h\"\n${arrays}"
                       "const struct catalog_file catalog_files[] = {\n${rows}"
                       "    {NULL, NULL, 0}};\n")
  return()
endif()

file(GLOB catalog CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/scenarios/catalog/*.yaml
     ${CMAKE_SOURCE_DIR}/scenarios/catalog/*/*.yaml)
set(output ${CMAKE_BINARY_DIR}/generated/builtin_catalog.c)
add_custom_command(
  OUTPUT ${output}
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_SOURCE_DIR}/scenarios/catalog -DOUTPUT=${output} -P
          ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${catalog} ${CMAKE_CURRENT_LIST_FILE}
          ${CMAKE_CURRENT_LIST_DIR}/bytes.cmake
  VERBATIM)
twinstep_has_literals(${output})
target_sources(twinstep PRIVATE ${output})
