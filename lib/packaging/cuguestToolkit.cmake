# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Sets cuguest_TOOLKIT_INCLUDE, the directory of cuda.h, unless it is set: where the embedder's CMake found
# the toolkit, $CUDA_PATH, beside nvcc, the compiler's path, ${cuguest_TOOLKIT_FALLBACK}, /usr/local/cuda.
# cuguest_toolkit is that directory if it is a toolkit's; else it is empty, and cuguest_why_no_toolkit says why.

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

# Of the cuda.h in `directory`; empty where that is another project's, which has none.
function(cuguest_read_cuda_version directory version)
  file(STRINGS "${directory}/cuda.h" line REGEX "^#define CUDA_VERSION [0-9]+" LIMIT_COUNT 1)
  string(REGEX REPLACE "[^0-9]" "" line "${line}")
  set(${version} "${line}" PARENT_SCOPE)
endfunction()

set(cuguest_toolkit "")
if(NOT EXISTS "${cuguest_TOOLKIT_INCLUDE}/cuda.h")
  set(cuguest_why_no_toolkit "cuda.h not found")
else()
  cuguest_read_cuda_version("${cuguest_TOOLKIT_INCLUDE}" cuguest_cuda_version)
  if(cuguest_cuda_version)
    set(cuguest_toolkit "${cuguest_TOOLKIT_INCLUDE}")
  else()
    set(cuguest_why_no_toolkit
        "${cuguest_TOOLKIT_INCLUDE}/cuda.h is not that of the CUDA Toolkit: it has no CUDA_VERSION")
  endif()
endif()
