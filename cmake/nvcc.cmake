# SPDX-License-Identifier: Apache-2.0
# What an nvcc has and knows, asked of itself: cmake/cuda.cmake asks when it configures the module, so
# that what is missing is told in a second and not after minutes of compiling.
# tests/kernels/nvcc_answers.py asks made-up ones, by this file as a script:
#
#     cmake -DNVCC=FILE -DFOLDER=FOLDER -DARCHITECTURES=LIST -P cmake/nvcc.cmake

cmake_minimum_required(VERSION 3.22)

# Ends where nvcc does not find the headers of cuBLAS. They are compiled against, never linked: the
# module opens the library when a run asks for it.
function(twinstep_nvcc_headers nvcc folder)
  set(probe ${folder}/cublas_headers.cu)
  file(WRITE ${probe} "#include <cublas_v2.h>\n#include <cublasLt.h>\n")
  execute_process(COMMAND ${nvcc} -E ${probe} RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE said)
  if(status STREQUAL "0")
    return()
  endif()
  if(said MATCHES "cublas")
    message(FATAL_ERROR
            "TWINSTEP_CUDA: expected the headers of cuBLAS (cublas_v2.h, cublasLt.h) where ${nvcc} "
            "looks for headers, found none. Install the package of this CUDA's release that holds "
            "them (libcublas-dev-13-0 of NVIDIA's packages for Debian and Ubuntu, "
            "libcublas-devel-13-0 for Fedora and RHEL, libcublas-dev of conda and of Debian), or "
            "name their folder in CPATH. The library itself is needed at run time only.")
  endif()
  message(FATAL_ERROR "TWINSTEP_CUDA: ${nvcc} preprocesses nothing: ${said}")
endfunction()

# twinstep_nvcc_architectures(OUT NVCC NUMBERS ... | auto): the architectures to make code for,
# ascending. Ends where nvcc does not know one of them.
function(twinstep_nvcc_architectures out nvcc)
  execute_process(COMMAND ${nvcc} --list-gpu-arch RESULT_VARIABLE status OUTPUT_VARIABLE said
                  ERROR_VARIABLE said)
  string(REGEX MATCHALL "compute_[0-9]+" known "${said}")
  list(TRANSFORM known REPLACE "compute_" "")
  if(NOT status STREQUAL "0" OR NOT known)
    message(FATAL_ERROR "TWINSTEP_CUDA: expected a list of architectures of "
                        "${nvcc} --list-gpu-arch, got: ${said}")
  endif()
  set(asked ${ARGN})
  if(asked STREQUAL "auto")
    set(asked 80 90)
    foreach(blackwell 100 120)
      if(blackwell IN_LIST known)
        list(APPEND asked ${blackwell})
      endif()
    endforeach()
  endif()
  list(SORT asked COMPARE NATURAL)
  foreach(architecture ${asked})
    if(NOT architecture IN_LIST known)
      string(REPLACE ";" ", " names "${known}")
      message(FATAL_ERROR "TWINSTEP_CUDA_ARCHITECTURES: expected numbers that ${nvcc} knows "
                          "(${names}), got ${architecture}")
    endif()
  endforeach()
  set(${out} ${asked} PARENT_SCOPE)
endfunction()

# twinstep_nvcc_codes(OUT NUMBERS ...): what nvcc is told to make code for them. Machine code runs on
# later devices of the same first digit alone (and on no Tegra but its own, as 8.7 is one), and the
# numbers of devices leave gaps (11.0). So each architecture's PTX is in the module, too: a driver
# compiles the newest that its device takes. nvcc makes that PTX on its way to machine code.
function(twinstep_nvcc_codes out)
  set(codes)
  foreach(architecture ${ARGN})
    foreach(code sm compute)
      list(APPEND codes -gencode arch=compute_${architecture},code=${code}_${architecture})
    endforeach()
  endforeach()
  set(${out} ${codes} PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  twinstep_nvcc_headers(${NVCC} ${FOLDER})
  twinstep_nvcc_architectures(architectures ${NVCC} ${ARCHITECTURES})
  message("code for ${architectures}")
  twinstep_nvcc_codes(codes ${architectures})
  message("told as ${codes}")
endif()
