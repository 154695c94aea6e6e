# SPDX-License-Identifier: Apache-2.0
# ranks/mpi/ as a module, twinstep_mpi.so beside bin/, where a library of MPI is found: twinstep run
# --ranks mpi loads it (docs/RANKS.md). Nothing else is compiled or linked with MPI.
option(TWINSTEP_MPI "build twinstep_mpi.so where MPI is found" ON)
if(TWINSTEP_MPI)
  find_package(MPI QUIET COMPONENTS C)
endif()
if(TWINSTEP_MPI AND MPI_C_FOUND)
  add_library(twinstep_mpi MODULE ranks/mpi/mpi_ranks.c)
  set_target_properties(twinstep_mpi PROPERTIES PREFIX "" SUFFIX .so
                                                LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_compile_options(twinstep_mpi PRIVATE -fno-tree-slp-vectorize)
  target_link_libraries(twinstep_mpi PRIVATE twinstep_flags MPI::MPI_C)
  # Where the program looks for modules below its prefix (base/module.c). It is no part of the
  # .deb, which would then need the MPI of this machine.
  install(TARGETS twinstep_mpi LIBRARY DESTINATION lib/twinstep COMPONENT plain)
else()
  message(STATUS "no twinstep_mpi.so, so no --ranks mpi: found no MPI with headers for C "
                 "(libopenmpi-dev of Debian and Ubuntu)")
endif()
