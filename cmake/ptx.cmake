# SPDX-License-Identifier: Apache-2.0
# twinstep_backend_ptx.so, for tests: kernels are what nvcc makes of kernels/cuda/, its PTX written
# as C (tests/kernels/ptx_host.py); their host's side and what runs them is the shim's. Kernels of
# tensor_attention.cu, whose instructions are a tensor core's, stay the shim's, and cuBLAS its twin.
# Made where nvcc is, when asked for (tests ask: build_backend_ptx): backend_ptx, of all kernels;
# backend_ptx_planted, whose ops are the shim's and whose other kernels are nvcc's with faults in their
# PTX, for tests to find.
find_program(PYTHON3 python3 REQUIRED)

function(twinstep_ptx_compile name)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name} PRIVATE twinstep_flags)
  target_compile_options(${name} PRIVATE -fvisibility=hidden ${shim_isa})
endfunction()

# The host's side of a kernel file.
function(twinstep_ptx_host name pair)
  twinstep_variant(variant ${pair} ptx)
  target_compile_definitions(${name} PRIVATE ${variant} LINEAR_FORMS_IN_TURN=1)
  twinstep_ptx_compile(${name})
endfunction()

# Objects of what stands in a file that PTX was written to, and of its host's side.
function(twinstep_ptx_objects part source pair made)
  add_library(${part} OBJECT EXCLUDE_FROM_ALL ${made})
  target_compile_options(${part} PRIVATE -O1 -g0 -w)
  twinstep_ptx_compile(${part})
  set(host ptx_${source}_${pair}_host)
  if(NOT TARGET ${host})
    add_library(${host} OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/kernels/cuda/${source}.cu)
    target_compile_options(${host} PRIVATE -include ${CMAKE_SOURCE_DIR}/tests/kernels/ptx_host.h)
    twinstep_ptx_host(${host} ${pair})
  endif()
endfunction()

# twinstep_ptx_part(SOURCE PAIR): objects ptx_SOURCE_PAIR, and ptx_SOURCE_PAIR_host.
function(twinstep_ptx_part source pair)
  set(ptx ${CMAKE_BINARY_DIR}/ptx/${source}_${pair}.ptx)
  twinstep_variant(variant ${pair} cuda)
  list(TRANSFORM variant PREPEND -D)
  add_custom_command(
    OUTPUT ${ptx}
    COMMAND ${NVCC} -ptx -arch=compute_90 -I${CMAKE_SOURCE_DIR} ${TWINSTEP_NVCC_FLAGS} ${variant}
            ${CMAKE_SOURCE_DIR}/kernels/cuda/${source}.cu -o ${ptx}
    DEPENDS ${TWINSTEP_CUDA_INPUTS}
    COMMENT "nvcc: PTX of ${source}, ${pair}"
    VERBATIM)
  twinstep_ptx_write(${source}_${pair} ${source}_${pair} ${pair})
  twinstep_ptx_objects(ptx_${source}_${pair} ${source} ${pair}
                       ${CMAKE_BINARY_DIR}/ptx/${source}_${pair}.c)
endfunction()

# twinstep_ptx_write(MADE PART PAIR WORDS ...): MADE.c of PART.ptx, with WORDS for the translator.
function(twinstep_ptx_write made part pair)
  set(out ${CMAKE_BINARY_DIR}/ptx/${made}.c)
  set(writer ${CMAKE_SOURCE_DIR}/tests/kernels/ptx_host.py)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${PYTHON3} ${writer} --variant ${pair}_ptx --out ${out} ${ARGN}
            ${CMAKE_BINARY_DIR}/ptx/${part}.ptx
    DEPENDS ${CMAKE_BINARY_DIR}/ptx/${part}.ptx ${writer}
    COMMENT "PTX of ${part} as C: ${made}"
    VERBATIM)
endfunction()

# ptx_parts: SOURCE_PAIR of each file of kernels.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/ptx)
set(ptx_parts)
set(tensor_pairs)
foreach(unit ${TWINSTEP_CUDA_UNITS})
  string(REGEX MATCH "([^:]*):(.*)" whole ${unit})
  set(source ${CMAKE_MATCH_1})
  set(pair ${CMAKE_MATCH_2})
  if(pair STREQUAL "-")
    continue()
  elseif(source STREQUAL "tensor_attention")
    list(APPEND tensor_pairs ${pair})
    continue()
  endif()
  twinstep_ptx_part(${source} ${pair})
  list(APPEND ptx_parts ${source}_${pair})
endforeach()

# twinstep_ptx_module(NAME PARTS ...): backend_NAME
function(twinstep_ptx_module name)
  twinstep_shim_module(${name} ptx)
  set_target_properties(backend_${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  foreach(part ${ARGN})
    target_sources(backend_${name} PRIVATE $<TARGET_OBJECTS:ptx_${part}>
                                           $<TARGET_OBJECTS:ptx_${part}_host>)
  endforeach()
endfunction()

twinstep_ptx_module(ptx ${ptx_parts})
foreach(pair ${tensor_pairs})
  set(tensor ptx_tensor_${pair})
  add_library(${tensor} OBJECT EXCLUDE_FROM_ALL
              ${CMAKE_SOURCE_DIR}/kernels/cuda/tensor_attention.cu)
  target_compile_options(${tensor} PRIVATE ${TWINSTEP_OPTIMISED} ${TWINSTEP_PORT})
  twinstep_ptx_host(${tensor} ${pair})
  target_sources(backend_ptx PRIVATE $<TARGET_OBJECTS:${tensor}>)
endforeach()

# twinstep_ptx_plant(SOURCE KERNEL OLD NEW): in place of the file's part for f32_f32, one in which the
# first OLD in the kernel's PTX is NEW.
twinstep_ptx_module(ptx_planted step_f64_f64)
function(twinstep_ptx_plant source kernel old new)
  set(part ${source}_f32_f32)
  twinstep_ptx_write(planted_${part} ${part} f32_f32 --plant ${kernel} ${old} ${new})
  twinstep_ptx_objects(ptx_planted_${part} ${source} f32_f32
                       ${CMAKE_BINARY_DIR}/ptx/planted_${part}.c)
  target_sources(backend_ptx_planted PRIVATE $<TARGET_OBJECTS:ptx_planted_${part}>
                                             $<TARGET_OBJECTS:ptx_${part}_host>)
endfunction()

twinstep_ptx_plant(leaf_hashes leaf_hashes_f32_kernel setp.gt.u32 setp.ge.u32)
twinstep_ptx_plant(update_sizes update_sizes_kernel sub.rn.f64 add.rn.f64)
twinstep_ptx_plant(run_distances run_distances_kernel sub.rn.f64 add.rn.f64)
twinstep_ptx_plant(readback_blocks readback_blocks_kernel mul.rn.f64 add.rn.f64)
twinstep_ptx_plant(squares squares_kernel add.rn.f64 sub.rn.f64)
twinstep_ptx_plant(step step_adam_apex_kernel sub.rn.f32 add.rn.f32)

# Its ops are the shim's.
target_sources(backend_ptx_planted PRIVATE ${kernels_shim})
foreach(pair ${TWINSTEP_CUDA_PAIRS})
  target_link_options(backend_ptx_planted PRIVATE
                      -Wl,--defsym=op_table_${pair}_ptx=op_table_${pair}_shim)
endforeach()
