# SPDX-License-Identifier: Apache-2.0
# The kernels of kernels/cuda/ twice: for a device, as a module (TWINSTEP_CUDA, where nvcc is), and
# always for the host, run by the shim, which tests link and load. The program itself has neither.

include(cmake/backend_layout.cmake)
twinstep_reads_layout(twinstep_kernels)

# twinstep_host_kernels(WORD FLAGS ...): ops.cu of each number pair as C, objects kernels_WORD_PAIR.
function(twinstep_host_kernels word)
  foreach(pair "f32;f32" "f32;f64" "f64;f64")
    list(GET pair 0 carrier)
    list(GET pair 1 accumulator)
    set(part kernels_${word}_${carrier}_${accumulator})
    add_library(${part} OBJECT ${CMAKE_SOURCE_DIR}/kernels/cuda/ops.cu)
    if(part MATCHES "f32_f32$") # the pair whose operands may be short
      target_sources(${part} PRIVATE ${CMAKE_SOURCE_DIR}/kernels/cuda/tensor_attention.cu
                                     ${CMAKE_SOURCE_DIR}/kernels/cuda/leaves.cu
                                     ${CMAKE_SOURCE_DIR}/kernels/cuda/moves.cu
                                     ${CMAKE_SOURCE_DIR}/kernels/cuda/pairs.cu
                                     ${CMAKE_SOURCE_DIR}/kernels/cuda/reads.cu
                                     ${CMAKE_SOURCE_DIR}/kernels/cuda/squares.cu)
    endif()
    if(carrier STREQUAL accumulator) # a working type of optimizers
      target_sources(${part} PRIVATE ${CMAKE_SOURCE_DIR}/kernels/cuda/step.cu)
    endif()
    set_target_properties(${part} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(${part} PRIVATE twinstep_flags)
    target_compile_options(${part} PRIVATE ${TWINSTEP_OPTIMISED} -fvisibility=hidden ${ARGN})
    target_compile_definitions(
      ${part} PRIVATE TWINSTEP_VARIANT=${carrier}_${accumulator}_${word}
                      TWINSTEP_CARRIER_${carrier}=1 TWINSTEP_ACCUMULATOR_${accumulator}=1
                      LINEAR_WIDE_TILES=2u) # so that small tests reach them
  endforeach()
endfunction()

set(TWINSTEP_SHIM
    kernels/cuda/shim.c kernels/cuda/shim_blocks.c kernels/cuda/shim_fibres.c
    kernels/cuda/shim_words.c kernels/cuda/shim_queue.c kernels/cuda/accesses.c
    kernels/cuda/shadow.c kernels/cuda/library_twin.c)

# twinstep_shim_module(NAME WORD DEFINITION ...): twinstep_backend_NAME.so but for its kernels, whose
# tables are called ..._WORD. It links nothing of ours: what it needs of base/ is compiled into it and
# fails through the module's host.
function(twinstep_shim_module name word)
  set(target backend_${name})
  add_library(${target} MODULE kernels/cuda/shim_module.c ${TWINSTEP_SHIM} base/arena.c)
  set_target_properties(
    ${target} PROPERTIES PREFIX "" OUTPUT_NAME twinstep_backend_${name} SUFFIX .so
                         LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/backends)
  target_link_libraries(${target} PRIVATE twinstep_flags)
  target_compile_definitions(${target} PRIVATE BACKEND_WORD=${word} BACKEND_IS_${word}=1 ${ARGN})
  target_compile_options(
    ${target} PRIVATE ${TWINSTEP_OPTIMISED} -fno-tree-slp-vectorize -fvisibility=hidden
                      -include ${CMAKE_SOURCE_DIR}/base/module_kit.h)
  twinstep_reads_layout(${target})
endfunction()

# What a module with a device would be, for tests.
function(twinstep_host_module name word)
  twinstep_shim_module(${name} ${word} ${ARGN})
  foreach(pair f32_f32 f32_f64 f64_f64)
    target_sources(backend_${name} PRIVATE $<TARGET_OBJECTS:kernels_${word}_${pair}>)
  endforeach()
endfunction()

set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/kernels/cuda/ops.cu ${CMAKE_SOURCE_DIR}/kernels/cuda/tensor_attention.cu
  ${CMAKE_SOURCE_DIR}/kernels/cuda/leaves.cu ${CMAKE_SOURCE_DIR}/kernels/cuda/moves.cu
  ${CMAKE_SOURCE_DIR}/kernels/cuda/pairs.cu ${CMAKE_SOURCE_DIR}/kernels/cuda/reads.cu ${CMAKE_SOURCE_DIR}/kernels/cuda/squares.cu
  ${CMAKE_SOURCE_DIR}/kernels/cuda/step.cu
  PROPERTIES LANGUAGE C)
if(BUILD_TESTING)
  # Tests run where they are built: with the fused operations of this machine, where it has them,
  # the kernels take less than half the time, and have the same bits.
  include(CheckCSourceRuns)
  check_c_source_runs(
    "int main(void) {
       return !(__builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\") &&
                __builtin_cpu_supports(\"bmi2\"));
     }"
    TWINSTEP_MACHINE_IS_V3)
  if(TWINSTEP_MACHINE_IS_V3)
    twinstep_host_kernels(shim ${TWINSTEP_ISA_v3})
  else()
    twinstep_host_kernels(shim)
  endif()
  twinstep_host_module(shim shim)
  twinstep_host_module(layout shim BACKEND_LAYOUT=1) # to be refused
  add_library(twinstep_shim STATIC ${TWINSTEP_SHIM})
  target_link_libraries(twinstep_shim PUBLIC twinstep_base)
  target_compile_options(twinstep_shim PRIVATE ${TWINSTEP_OPTIMISED})
  foreach(pair f32_f32 f32_f64 f64_f64)
    target_sources(twinstep_shim PRIVATE $<TARGET_OBJECTS:kernels_shim_${pair}>)
  endforeach()
endif()
# Watched kernels (kernels/cuda/accesses.h). Another sanitizer cannot be had in the same file.
if(BUILD_TESTING AND NOT TWINSTEP_SANITIZE)
  # clang's optimiser reads ahead of a condition, and is watched behind it: no read of the source
  twinstep_host_kernels(watch -fsanitize=thread $<$<C_COMPILER_ID:Clang>:-O0>)
  twinstep_host_module(watch watch)
  add_library(twinstep_watched STATIC)
  target_link_libraries(twinstep_watched PUBLIC twinstep_shim)
  foreach(pair f32_f32 f32_f64 f64_f64)
    target_sources(twinstep_watched PRIVATE $<TARGET_OBJECTS:kernels_watch_${pair}>)
  endforeach()
  set_target_properties(twinstep_watched PROPERTIES LINKER_LANGUAGE C)
endif()

# The module for devices. nvcc is called as a program: CMake's CUDA language would ask for a device's
# architecture, and the program needs none of it.
set(TWINSTEP_CUDA OFF CACHE BOOL "build twinstep_cuda.so; needs nvcc of CUDA 12 or 13")
find_program(NVCC nvcc HINTS ENV CUDA_PATH PATH_SUFFIXES bin PATHS /usr/local/cuda/bin)
set(TWINSTEP_NVCC_FLAGS -std=c++20 --fmad=false --prec-div=true --prec-sqrt=true --ftz=false)
if(BUILD_TESTING AND NVCC)
  include(cmake/ptx.cmake)
endif()
if(TWINSTEP_CUDA AND NOT NVCC)
  message(FATAL_ERROR "TWINSTEP_CUDA: expected nvcc on PATH, in CUDA_PATH/bin or in "
                      "/usr/local/cuda/bin, found none")
endif()
if(TWINSTEP_CUDA)
  set(device -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode
             arch=compute_90,code=compute_90)
  set(host -O3 -I${CMAKE_SOURCE_DIR} -Xcompiler
           -fPIC,-ffp-contract=off,-fno-tree-slp-vectorize,-fvisibility=hidden)
  set(headers ${CMAKE_SOURCE_DIR}/kernels/cuda/*.cu ${CMAKE_SOURCE_DIR}/kernels/cuda/*.h
              ${CMAKE_SOURCE_DIR}/kernels/*.h ${CMAKE_SOURCE_DIR}/base/*.h
              ${CMAKE_SOURCE_DIR}/base/*.inc ${CMAKE_SOURCE_DIR}/determinism/*.h)
  file(GLOB inputs CONFIGURE_DEPENDS ${headers})
  set(objects)
  foreach(pair "f32;f32" "f32;f64" "f64;f64" "module;_" "library;_" "tensor_attention;f32_f32"
               "leaves;f32_f32" "moves;f32_f32" "pairs;f32_f32" "reads;f32_f32" "squares;f32_f32"
               "step;f32_f32" "step;f64_f64")
    list(GET pair 0 carrier)
    list(GET pair 1 accumulator)
    set(source ${CMAKE_SOURCE_DIR}/kernels/cuda/ops.cu)
    set(defined -DTWINSTEP_VARIANT=${carrier}_${accumulator}_cuda -DTWINSTEP_CARRIER_${carrier}=1
                -DTWINSTEP_ACCUMULATOR_${accumulator}=1)
    if(accumulator STREQUAL "_")
      set(source ${CMAKE_SOURCE_DIR}/kernels/cuda/${carrier}.cu)
      set(defined -I${CMAKE_BINARY_DIR}/generated)
    elseif(accumulator MATCHES "(f..)_(f..)") # a file of its own, for one pair
      set(source ${CMAKE_SOURCE_DIR}/kernels/cuda/${carrier}.cu)
      set(defined -DTWINSTEP_VARIANT=${accumulator}_cuda -DTWINSTEP_CARRIER_${CMAKE_MATCH_1}=1
                  -DTWINSTEP_ACCUMULATOR_${CMAKE_MATCH_2}=1)
    endif()
    set(object ${CMAKE_BINARY_DIR}/cuda_${carrier}_${accumulator}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${NVCC} -c ${TWINSTEP_NVCC_FLAGS} ${device} ${host} ${defined} ${source} -o ${object}
      DEPENDS ${inputs} ${TWINSTEP_LAYOUT}
      COMMENT "nvcc ${carrier} ${accumulator}"
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
