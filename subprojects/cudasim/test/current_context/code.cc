// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules and functions, libraries and kernels, linking.

#include "test/current_context/calls.h"

namespace cudasim_facts {
namespace current_context {

const std::vector<DriverCall> kCodeCalls = {
    {"cuModuleLoadDataEx",
     [](Trial& t) {
       CUmodule made = nullptr;
       const CUresult code = t.Do(
           [&] { return RAW(cuModuleLoadDataEx)(&made, t.o.ptx.c_str(), 0, nullptr, nullptr); });
       if (code != CUDA_SUCCESS) return code;
       CUdeviceptr number = 0;
       Objects::In(t.current, [&] {
         OK(RAW(cuModuleGetGlobal)(&number, nullptr, made, "number"));
         t.SawOfPointer(number);
         OK(RAW(cuModuleUnload)(made));
       });
       return code;
     }},
    {"cuModuleUnload",
     [](Trial& t) {
       CUmodule made = nullptr;
       t.InA([&] { OK(RAW(cuModuleLoadData)(&made, t.o.ptx.c_str())); });
       const CUresult code = t.Do([&] { return RAW(cuModuleUnload)(made); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuModuleUnload)(made)); });
       return code;
     }},
    {"cuModuleGetFunction",
     [](Trial& t) {
       CUfunction found = nullptr;
       const CUresult code =
           t.Do([&] { return RAW(cuModuleGetFunction)(&found, t.o.module, "nothing"); });
       if (code == CUDA_SUCCESS) t.SawOfFunction(found);
       return code;
     }},
    {"cuModuleGetGlobal",
     [](Trial& t) {
       CUdeviceptr number = 0;
       size_t bytes = 0;
       const CUresult code =
           t.Do([&] { return RAW(cuModuleGetGlobal)(&number, &bytes, t.o.module, "number"); });
       if (code == CUDA_SUCCESS) t.SawOfPointer(number);
       return code;
     }},
    {"cuModuleGetLoadingMode",
     [](Trial& t) { return Ask<CUmoduleLoadingMode>(t, RAW(cuModuleGetLoadingMode)); }},
    {"cuFuncGetAttribute",
     [](Trial& t) {
       int value = 0;
       return t.Do([&] {
         return RAW(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, t.o.nothing);
       });
     }},
    {"cuFuncSetAttribute",
     [](Trial& t) {
       return t.Do([&] {
         return RAW(cuFuncSetAttribute)(t.o.nothing,
                                        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024);
       });
     }},
    {"cuFuncGetModule",
     [](Trial& t) {
       CUmodule module = nullptr;
       return t.Do([&] { return RAW(cuFuncGetModule)(&module, t.o.nothing); });
     }},
    {"cuFuncGetName",
     [](Trial& t) {
       const char* name = nullptr;
       return t.Do([&] { return RAW(cuFuncGetName)(&name, t.o.nothing); });
     }},
    {"cuFuncGetParamInfo",
     [](Trial& t) {
       size_t offset = 0;
       size_t size = 0;
       return t.Do([&] { return RAW(cuFuncGetParamInfo)(t.o.store, 0, &offset, &size); });
     }},
    {"cuFuncIsLoaded",
     [](Trial& t) {
       auto state = CU_FUNCTION_LOADING_STATE_UNLOADED;
       return t.Do([&] { return RAW(cuFuncIsLoaded)(&state, t.o.nothing); });
     }},
    {"cuFuncLoad", [](Trial& t) { return t.Do([&] { return RAW(cuFuncLoad)(t.o.nothing); }); }},
    {"cuLibraryLoadData",
     [](Trial& t) {
       CUlibrary made = nullptr;
       const CUresult code = t.Do([&] {
         return RAW(cuLibraryLoadData)(&made, t.o.ptx.c_str(), nullptr, nullptr, 0, nullptr,
                                       nullptr, 0);
       });
       if (code == CUDA_SUCCESS) OK(RAW(cuLibraryUnload)(made));
       return code;
     }},
    {"cuLibraryUnload",
     [](Trial& t) {
       CUlibrary made = nullptr;
       OK(RAW(cuLibraryLoadData)(&made, t.o.ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
       return t.Do([&] { return RAW(cuLibraryUnload)(made); });
     }},
    {"cuLibraryGetKernel",
     [](Trial& t) {
       CUkernel kernel = nullptr;
       return t.Do([&] { return RAW(cuLibraryGetKernel)(&kernel, t.o.library, "nothing"); });
     }},
    {"cuLibraryGetKernelCount",
     [](Trial& t) {
       unsigned count = 0;
       return t.Do([&] { return RAW(cuLibraryGetKernelCount)(&count, t.o.library); });
     }},
    {"cuLibraryEnumerateKernels",
     [](Trial& t) {
       CUkernel kernels[2] = {};
       return t.Do([&] { return RAW(cuLibraryEnumerateKernels)(kernels, 2, t.o.library); });
     }},
    {"cuLibraryGetModule",
     [](Trial& t) {
       CUmodule module = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuLibraryGetModule)(&module, t.o.library); });
       if (code != CUDA_SUCCESS) return code;
       CUfunction found = nullptr;
       OK(RAW(cuModuleGetFunction)(&found, module, "nothing"));
       t.SawOfFunction(found);
       return code;
     }},
    {"cuLibraryGetGlobal",
     [](Trial& t) {
       CUdeviceptr number = 0;
       size_t bytes = 0;
       const CUresult code =
           t.Do([&] { return RAW(cuLibraryGetGlobal)(&number, &bytes, t.o.library, "number"); });
       if (code == CUDA_SUCCESS) t.SawOfPointer(number);
       return code;
     }},
    {"cuKernelGetFunction",
     [](Trial& t) {
       CUfunction found = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuKernelGetFunction)(&found, t.o.kernel); });
       if (code == CUDA_SUCCESS) t.SawOfFunction(found);
       return code;
     }},
    {"cuKernelGetLibrary",
     [](Trial& t) {
       CUlibrary library = nullptr;
       return t.Do([&] { return RAW(cuKernelGetLibrary)(&library, t.o.kernel); });
     }},
    {"cuKernelGetName",
     [](Trial& t) {
       const char* name = nullptr;
       return t.Do([&] { return RAW(cuKernelGetName)(&name, t.o.kernel); });
     }},
    {"cuLinkCreate",
     [](Trial& t) {
       CUlinkState made = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuLinkCreate)(0, nullptr, nullptr, &made); });
       if (code == CUDA_SUCCESS) OK(RAW(cuLinkDestroy)(made));
       return code;
     }},
    {"cuLinkAddData",
     [](Trial& t) {
       CUlinkState state = nullptr;
       t.InA([&] { OK(RAW(cuLinkCreate)(0, nullptr, nullptr, &state)); });
       std::string code = t.o.ptx;
       const CUresult added = t.Do([&] {
         return RAW(cuLinkAddData)(state, CU_JIT_INPUT_PTX, &code[0], code.size() + 1, "x", 0,
                                   nullptr, nullptr);
       });
       OK(RAW(cuLinkDestroy)(state));
       return added;
     }},
    {"cuLinkComplete",
     [](Trial& t) {
       CUlinkState state = nullptr;
       std::string code = t.o.ptx;
       t.InA([&] {
         OK(RAW(cuLinkCreate)(0, nullptr, nullptr, &state));
         OK(RAW(cuLinkAddData)(state, CU_JIT_INPUT_PTX, &code[0], code.size() + 1, "x", 0, nullptr,
                               nullptr));
       });
       void* image = nullptr;
       size_t size = 0;
       const CUresult completed = t.Do([&] { return RAW(cuLinkComplete)(state, &image, &size); });
       OK(RAW(cuLinkDestroy)(state));
       return completed;
     }},
    {"cuLinkDestroy",
     [](Trial& t) {
       CUlinkState state = nullptr;
       t.InA([&] { OK(RAW(cuLinkCreate)(0, nullptr, nullptr, &state)); });
       return t.Do([&] { return RAW(cuLinkDestroy)(state); });
     }},
};

}  // namespace current_context
}  // namespace cudasim_facts
