# SPDX-License-Identifier: Apache-2.0
# BACKEND_LAYOUT: what a backend's module and the program must have read alike. A hash of the headers
# of base/, determinism/ and kernels/, byte by byte: of structs and of the arithmetic, so that a
# module of other sources is refused instead of read askew or computing other bits. Included by
# cmake/cuda.cmake it adds the header; run with -P (SOURCE, OUTPUT) it writes it, and only when it
# says something else.
if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB headers RELATIVE ${SOURCE} ${SOURCE}/base/*.h ${SOURCE}/base/*.inc
       ${SOURCE}/determinism/*.h ${SOURCE}/kernels/*.h)
  list(SORT headers)
  set(all "")
  foreach(header ${headers})
    file(SHA256 ${SOURCE}/${header} hash)
    string(APPEND all "${header} ${hash}\n")
  endforeach()
  string(SHA256 hash "${all}")
  string(SUBSTRING ${hash} 0 16 word)
  set(text "#define BACKEND_LAYOUT UINT64_C(0x${word})\n")
  set(before "")
  if(EXISTS ${OUTPUT})
    file(READ ${OUTPUT} before)
  endif()
  if(NOT before STREQUAL text)
    file(WRITE ${OUTPUT} "${text}")
  endif()
  return()
endif()

set(TWINSTEP_LAYOUT ${CMAKE_BINARY_DIR}/generated/layout_word.h)
file(GLOB layout_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/base/*.h
     ${CMAKE_SOURCE_DIR}/base/*.inc ${CMAKE_SOURCE_DIR}/determinism/*.h
     ${CMAKE_SOURCE_DIR}/kernels/*.h)
add_custom_command(
  OUTPUT ${TWINSTEP_LAYOUT}
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${TWINSTEP_LAYOUT} -P
          ${CMAKE_SOURCE_DIR}/cmake/backend_layout.cmake
  DEPENDS ${layout_headers} ${CMAKE_SOURCE_DIR}/cmake/backend_layout.cmake
  COMMENT "layout_word.h"
  VERBATIM)
add_custom_target(backend_layout_header DEPENDS ${TWINSTEP_LAYOUT})

# For targets with a file that reads kernels/backend_layout.h.
function(twinstep_reads_layout target)
  add_dependencies(${target} backend_layout_header)
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
endfunction()
