# SPDX-License-Identifier: Apache-2.0
# The kernels of kernels/cuda/ as a module for a device (TWINSTEP_CUDA, where nvcc is). Tests also run
# them on the host (cmake/shim.cmake). The program itself has neither: it loads the module.

include(cmake/backend_layout.cmake)
twinstep_reads_layout(twinstep_kernels)

# TWINSTEP_CUDA_UNITS: SOURCE:PAIR of each unit of kernels/cuda/units.txt; TWINSTEP_CUDA_PAIRS: the
# number pairs, which are those of ops.cu.
set(units_file ${CMAKE_SOURCE_DIR}/kernels/cuda/units.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${units_file})
file(STRINGS ${units_file} rows REGEX "^[a-z]")
set(TWINSTEP_CUDA_UNITS)
foreach(row ${rows})
  string(REGEX REPLACE " +" ";" words ${row})
  list(POP_FRONT words source)
  list(TRANSFORM words PREPEND "${source}:")
  list(APPEND TWINSTEP_CUDA_UNITS ${words})
endforeach()
set(TWINSTEP_CUDA_PAIRS ${TWINSTEP_CUDA_UNITS})
list(FILTER TWINSTEP_CUDA_PAIRS INCLUDE REGEX "^ops:")
list(TRANSFORM TWINSTEP_CUDA_PAIRS REPLACE "^ops:" "")

# What nvcc reads of the tree.
file(GLOB TWINSTEP_CUDA_INPUTS CONFIGURE_DEPENDS
     ${CMAKE_SOURCE_DIR}/kernels/cuda/*.cu ${CMAKE_SOURCE_DIR}/kernels/cuda/*.h
     ${CMAKE_SOURCE_DIR}/kernels/*.h ${CMAKE_SOURCE_DIR}/base/*.h ${CMAKE_SOURCE_DIR}/base/*.inc
     ${CMAKE_SOURCE_DIR}/determinism/*.h)

# twinstep_variant(OUT PAIR WORD): what a unit is compiled with; WORD says who runs it. TWINSTEP_PLAIN
# is the variant that pairs of numbers in two bytes take products from.
function(twinstep_variant out pair word)
  string(REPLACE "_" ";" types ${pair})
  list(GET types 0 carrier)
  list(GET types 1 accumulator)
  set(${out} TWINSTEP_VARIANT=${pair}_${word} TWINSTEP_CARRIER_${carrier}=1
             TWINSTEP_ACCUMULATOR_${accumulator}=1 TWINSTEP_PLAIN=f32_f32_${word}
      PARENT_SCOPE)
endfunction()

# nvcc is called as a program: CMake's CUDA language would ask for a device's architecture, and the
# program needs none of it.
set(TWINSTEP_CUDA OFF CACHE BOOL "build twinstep_cuda.so; needs nvcc of CUDA 12 or 13")
set(TWINSTEP_CUDA_ARCHITECTURES auto CACHE STRING
    "code for these, and their PTX for devices between and behind them; auto: 80, 90 and, where nvcc knows them, 100 and 120")
find_program(NVCC nvcc HINTS ENV CUDA_PATH PATH_SUFFIXES bin PATHS /usr/local/cuda/bin)
set(TWINSTEP_NVCC_FLAGS -std=c++20 --fmad=false --prec-div=true --prec-sqrt=true --ftz=false)
if(BUILD_TESTING)
  include(cmake/shim.cmake)
endif()
if(TWINSTEP_CUDA AND NOT NVCC)
  message(FATAL_ERROR "TWINSTEP_CUDA: expected nvcc on PATH, in CUDA_PATH/bin or in "
                      "/usr/local/cuda/bin, found none")
endif()
if(TWINSTEP_CUDA)
  include(cmake/nvcc.cmake)
  twinstep_nvcc_headers(${NVCC} ${CMAKE_BINARY_DIR})
  twinstep_nvcc_architectures(architectures ${NVCC} ${TWINSTEP_CUDA_ARCHITECTURES})
  message(STATUS "TWINSTEP_CUDA: code for ${architectures}")
  twinstep_nvcc_codes(device ${architectures})
  set(host -O3 -I${CMAKE_SOURCE_DIR} -Xcompiler
           -fPIC,-ffp-contract=off,-fno-tree-slp-vectorize,-fvisibility=hidden)
  set(objects)
  foreach(unit ${TWINSTEP_CUDA_UNITS})
    string(REGEX MATCH "([^:]*):(.*)" whole ${unit})
    set(source ${CMAKE_MATCH_1})
    set(pair ${CMAKE_MATCH_2})
    if(pair STREQUAL "-")
      set(defined -I${CMAKE_BINARY_DIR}/generated)
      set(object ${CMAKE_BINARY_DIR}/cuda_${source}.o)
    else()
      twinstep_variant(defined ${pair} cuda)
      list(TRANSFORM defined PREPEND -D)
      set(object ${CMAKE_BINARY_DIR}/cuda_${source}_${pair}.o)
    endif()
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${NVCC} -c ${TWINSTEP_NVCC_FLAGS} ${device} ${host} ${defined}
              ${CMAKE_SOURCE_DIR}/kernels/cuda/${source}.cu -o ${object}
      DEPENDS ${TWINSTEP_CUDA_INPUTS} ${TWINSTEP_LAYOUT}
      COMMENT "nvcc ${source} ${pair}"
      VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(module ${CMAKE_BINARY_DIR}/twinstep_cuda.so)
  add_custom_command(
    OUTPUT ${module}
    COMMAND ${NVCC} -shared -cudart static ${objects} -o ${module}
    DEPENDS ${objects}
    COMMENT "twinstep_cuda.so"
    VERBATIM)
  add_custom_target(twinstep_cuda ALL DEPENDS ${module})
  add_dependencies(twinstep_cuda backend_layout_header)
endif()
