# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Sets cuguest_TOOLKIT_INCLUDE, the directory of cuda.h, unless it is set: where the embedder's CMake found
# the toolkit, $CUDA_PATH, beside nvcc, the compiler's path, ${cuguest_TOOLKIT_FALLBACK}, /usr/local/cuda.

find_program(cuguest_NVCC nvcc)
mark_as_advanced(cuguest_NVCC)
set(cuguest_hints ${CUDAToolkit_INCLUDE_DIRS} "$ENV{CUDA_PATH}/include")
if(cuguest_NVCC)
  get_filename_component(cuguest_nvcc_dir "${cuguest_NVCC}" REALPATH)
  get_filename_component(cuguest_nvcc_dir "${cuguest_nvcc_dir}" DIRECTORY)
  list(APPEND cuguest_hints "${cuguest_nvcc_dir}/../include")
endif()
find_path(cuguest_TOOLKIT_INCLUDE cuda.h
          HINTS ${cuguest_hints} PATHS "${cuguest_TOOLKIT_FALLBACK}" /usr/local/cuda/include)
mark_as_advanced(cuguest_TOOLKIT_INCLUDE)
