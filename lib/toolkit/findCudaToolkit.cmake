# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# find_cuda_toolkit(PREFIX MINIMUM): where the CUDA Toolkit is; find_toolkit, beside this file, has the rule. Sets
#
#   PREFIX_TOOLKIT_INCLUDE   in the cache, unless it is set, which chooses a toolkit: the directory of cuda.h
#   PREFIX_toolkit           that directory, and nothing where there is no toolkit whose CUDA_VERSION is MINIMUM or more
#   PREFIX_why_no_toolkit    why there is none
#   PREFIX_cuda_version      the CUDA_VERSION

set(find_cuda_toolkit_by "${CMAKE_CURRENT_LIST_DIR}/find_toolkit")

function(find_cuda_toolkit prefix minimum)
  set(arguments "")
  if(${prefix}_TOOLKIT_INCLUDE)
    list(APPEND arguments --only "${${prefix}_TOOLKIT_INCLUDE}")
  endif()
  # What the embedder has found, or said to CMake's FindCUDAToolkit.
  foreach(name IN ITEMS CUDAToolkit_INCLUDE_DIRS CUDAToolkit_ROOT)
    foreach(place IN LISTS ${name})
      list(APPEND arguments --hint "${name}=${place}")
    endforeach()
  endforeach()
  if(CMAKE_CUDA_COMPILER)
    list(APPEND arguments --nvcc "${CMAKE_CUDA_COMPILER}")
  endif()
  set(compiler "")
  foreach(language IN ITEMS CXX C)
    if(CMAKE_${language}_COMPILER AND NOT compiler)
      separate_arguments(flags NATIVE_COMMAND "${CMAKE_${language}_FLAGS}")
      set(compiler "${CMAKE_${language}_COMPILER}" ${flags})
    endif()
  endforeach()

  set(toolkit "")
  set(version 0)
  execute_process(COMMAND sh "${find_cuda_toolkit_by}" ${arguments} ${minimum} ${compiler}
    OUTPUT_VARIABLE answer RESULT_VARIABLE code ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(code EQUAL 0)
    string(REGEX REPLACE "\n.*" "" toolkit "${answer}")
    string(REGEX REPLACE "^[^\n]*\n[^\n]*\n([0-9]+).*" "\\1" version "${answer}")
    set(${prefix}_TOOLKIT_INCLUDE "${toolkit}" CACHE PATH "Directory of the CUDA Toolkit's cuda.h")
    mark_as_advanced(${prefix}_TOOLKIT_INCLUDE)
  elseif(answer STREQUAL "")
    set(answer "there is no sh to look for it with")
  endif()
  set(${prefix}_toolkit "${toolkit}" PARENT_SCOPE)
  set(${prefix}_cuda_version "${version}" PARENT_SCOPE)
  set(${prefix}_why_no_toolkit "${answer}" PARENT_SCOPE)
endfunction()
