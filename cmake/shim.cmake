# SPDX-License-Identifier: Apache-2.0
# The kernels of kernels/cuda/ compiled as C and run on the host by tests/shim/: for tests, which link
# them (twinstep_shim, twinstep_watched) or load them as a module for a device would be loaded
# (backends/twinstep_backend_*.so). Nothing of it goes into the program.

# Of these kernels tests ask bits, not speed. At -O3 gcc takes about twice the time for them (watched
# ones: three times) that it takes so; they run 1.1 times as long (watched ones: 0.8 times).
set(TWINSTEP_SHIM_OPTIMISED $<$<CONFIG:Release,RelWithDebInfo>:-O2>)
set(TWINSTEP_WATCH_OPTIMISED $<$<CONFIG:Release,RelWithDebInfo>:-O1>)
# With the address sanitizer gcc compiles ops.cu in 2.4 s at -O0 and in 6.0 s at -O1, and test_cuda_ops
# takes 1.2 times as long. (The host's kernels stay at -O1: at -O0 trainings take twice as long.)
if(TWINSTEP_SANITIZE)
  set(TWINSTEP_SHIM_OPTIMISED $<$<C_COMPILER_ID:GNU>:-O0>)
endif()

file(GLOB TWINSTEP_SHIM CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/shim/*.c)
set(shim_module ${CMAKE_SOURCE_DIR}/tests/shim/shim_module.c)
list(REMOVE_ITEM TWINSTEP_SHIM ${shim_module})
# In front of each kernel file, which has the words of kernels/cuda/port.h from there.
set(TWINSTEP_PORT -include ${CMAKE_SOURCE_DIR}/tests/shim/shim_port.h)

# twinstep_host_kernels(WORD FLAGS ...): the units of each number pair as C, targets
# kernels_WORD_PAIR; kernels_WORD lists the objects of all.
function(twinstep_host_kernels word)
  set(objects)
  foreach(pair ${TWINSTEP_CUDA_PAIRS})
    set(sources ${TWINSTEP_CUDA_UNITS})
    list(FILTER sources INCLUDE REGEX ":${pair}$")
    list(TRANSFORM sources REPLACE "(.*):.*" "${CMAKE_SOURCE_DIR}/kernels/cuda/\\1.cu")
    set_source_files_properties(${sources} PROPERTIES LANGUAGE C)
    set(part kernels_${word}_${pair})
    add_library(${part} OBJECT ${sources})
    set_target_properties(${part} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(${part} PRIVATE twinstep_flags)
    target_compile_options(${part} PRIVATE ${TWINSTEP_SHIM_OPTIMISED} ${TWINSTEP_KERNEL_DEBUG}
                                           -fvisibility=hidden ${ARGN} ${TWINSTEP_PORT})
    twinstep_variant(variant ${pair} ${word})
    # every form of tile of linear layers has its turn, so that small tests reach them all
    target_compile_definitions(${part} PRIVATE ${variant} LINEAR_FORMS_IN_TURN=1)
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
  endforeach()
  set(kernels_${word} ${objects} PARENT_SCOPE)
endfunction()

# twinstep_shim_module(NAME WORD DEFINITION ...): twinstep_backend_NAME.so but for its kernels, whose
# tables are called ..._WORD. It links nothing of ours: what it needs of base/ is compiled into it and
# fails through the module's host.
function(twinstep_shim_module name word)
  set(target backend_${name})
  add_library(${target} MODULE ${shim_module} ${TWINSTEP_SHIM} ${CMAKE_SOURCE_DIR}/base/arena.c)
  set_target_properties(
    ${target} PROPERTIES PREFIX "" OUTPUT_NAME twinstep_backend_${name} SUFFIX .so
                         LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/backends)
  target_link_libraries(${target} PRIVATE twinstep_flags)
  # base/arena.c asks for _DEFAULT_SOURCE itself, but module_kit.h comes before it here
  target_compile_definitions(${target} PRIVATE BACKEND_WORD=${word} BACKEND_IS_${word}=1
                                               _DEFAULT_SOURCE ${ARGN})
  target_compile_options(
    ${target} PRIVATE ${TWINSTEP_SHIM_OPTIMISED} -fno-tree-slp-vectorize -fvisibility=hidden
                      -include ${CMAKE_SOURCE_DIR}/base/module_kit.h)
  twinstep_reads_layout(${target})
endfunction()

# What a module with a device would be, for tests.
function(twinstep_host_module name word)
  twinstep_shim_module(${name} ${word} ${ARGN})
  target_sources(backend_${name} PRIVATE ${kernels_${word}})
endfunction()

# Tests run where they are built: with the fused operations of this machine, where it has them, the
# kernels take less than half the time, and have the same bits.
set(shim_isa)
if(TWINSTEP_MACHINE_IS_V3)
  set(shim_isa ${TWINSTEP_ISA_v3})
endif()
twinstep_host_kernels(shim ${shim_isa})
twinstep_host_module(shim shim)
# the same, which keeps all activations in carriers
twinstep_host_module(carried shim BACKEND_CARRIED=1)
# to be refused
twinstep_host_module(layout shim BACKEND_LAYOUT=1)
twinstep_host_module(lacking shim BACKEND_LACKS=1)
add_library(twinstep_shim STATIC ${TWINSTEP_SHIM})
if(NOT TWINSTEP_SANITIZE STREQUAL "thread") # which no fibre runs under (tests/kernels/helper_ops.c)
  target_sources(twinstep_shim PRIVATE ${kernels_shim})
endif()
target_link_libraries(twinstep_shim PUBLIC twinstep_base)
target_compile_options(twinstep_shim PRIVATE ${TWINSTEP_SHIM_OPTIMISED})

# Watched kernels (tests/shim/accesses.h). Another sanitizer cannot be had in the same file.
if(NOT TWINSTEP_SANITIZE)
  # clang's optimiser reads ahead of a condition, and is watched behind it: no read of the source
  twinstep_host_kernels(watch ${TWINSTEP_WATCH_OPTIMISED} -fsanitize=thread
                        $<$<C_COMPILER_ID:Clang>:-O0>)
  twinstep_host_module(watch watch)
  add_library(twinstep_watched STATIC ${kernels_watch})
  target_link_libraries(twinstep_watched PUBLIC twinstep_shim)
  set_target_properties(twinstep_watched PROPERTIES LINKER_LANGUAGE C)
endif()

if(NVCC)
  include(cmake/ptx.cmake)
endif()
