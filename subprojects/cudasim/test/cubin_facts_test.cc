// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Machine code that is loaded: the same kernels and parameters as of the text that it was
// compiled from. Measured on an NVIDIA H100, driver 580.159.04.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "test/jit.h"

BOOST_AUTO_TEST_SUITE(cubin_facts, *cudasim_facts::NeedsCompiler())

using namespace cudasim_facts;

namespace {

using Layout = std::vector<std::pair<size_t, size_t>>;  // offset, size

// As nvcc writes them: numbers, a vector, structures by value, pointers.
const std::string kParameters = kHead + R"(
.visible .entry none()
{ ret; }
.visible .entry mixed(
  .param .u8 mixed_param_0,
  .param .f64 mixed_param_1,
  .param .u16 mixed_param_2,
  .param .align 16 .b8 mixed_param_3[16],
  .param .align 8 .b8 mixed_param_4[24],
  .param .align 1 .b8 mixed_param_5[3],
  .param .u64 .ptr .global .align 4 mixed_param_6,
  .param .u32 mixed_param_7
)
.maxntid 128, 1, 1
{ ret; }
.entry two(.param .u64 a, .param .u32 b) { ret; }
.visible .entry wide(.param .u8 a, .param .align 32 .b8 b[32], .param .align 64 .b8 c[64])
{ ret; }
.visible .entry several(.param .align 4 .b8 a[3000], .param .u64 b) { ret; }
)";

const std::map<std::string, Layout> kLayouts = {
    {"none", {}},
    {"mixed", {{0, 1}, {8, 8}, {16, 2}, {32, 16}, {48, 24}, {72, 3}, {80, 8}, {88, 4}}},
    {"two", {{0, 8}, {8, 4}}},
    // From the beginning of the memory that they are in, which has 0x210 bytes before them.
    {"wide", {{0, 1}, {16, 32}, {48, 64}}},
    {"several", {{0, 3000}, {3000, 8}}},
};

// With variables, one of them without a value, and a kernel that must not be compiled away.
const std::string kVariables = kHead + R"(
.visible .global .align 4 .u32 number = 7;
.visible .global .align 8 .b8 bytes[12] = {1, 2, 3};
.visible .global .align 4 .u32 zero;
.visible .const .align 4 .u32 fixed[2] = {5, 6};
.visible .entry add(.param .u64 to)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<9>;
  ld.param.u64 %rd1, [to];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.u32 %r1, [number];
  ld.global.u32 %r2, [bytes];
  ld.global.u32 %r3, [zero];
  ld.const.u32 %r4, [fixed];
  add.u32 %r5, %r1, %r2;
  add.u32 %r6, %r3, %r4;
  add.u32 %r7, %r5, %r6;
  st.global.u32 [%rd2], %r7;
  ret;
}
)";

// More than 4 KiB.
const std::string kLarge = R"(.version 8.1
.target sm_70
.address_size 64
.visible .entry large(.param .u64 a, .param .align 1 .b8 b[32000], .param .u16 c) { ret; }
)";

std::string Compile(const std::string& text) {
  std::string cubin;
  OwnLink link;
  OK(link.Add(text));
  OK(link.Complete(&cubin));
  return cubin;
}

// The layout of each of the functions of a module.
std::map<std::string, Layout> LayoutsOf(const std::string& image) {
  std::map<std::string, Layout> layouts;
  CUmodule module = nullptr;
  OK(RAW(cuModuleLoadData)(&module, image.data()));
  unsigned count = 0;
  OK(RAW(cuModuleGetFunctionCount)(&count, module));
  std::vector<CUfunction> functions(count);
  OK(RAW(cuModuleEnumerateFunctions)(functions.data(), count, module));
  for (const CUfunction function : functions) {
    const char* name = nullptr;
    OK(RAW(cuFuncGetName)(&name, function));
    Layout& layout = layouts[name];
    std::pair<size_t, size_t> parameter;
    while (RAW(cuFuncGetParamInfo)(function, layout.size(), &parameter.first, &parameter.second) ==
           CUDA_SUCCESS) {
      layout.push_back(parameter);
    }
  }
  OK(RAW(cuModuleUnload)(module));
  return layouts;
}

// The bytes of a variable of a module.
std::string ValueOf(CUmodule module, const char* name) {
  CUdeviceptr address = 0;
  size_t size = 0;
  OK(RAW(cuModuleGetGlobal)(&address, &size, module, name));
  std::string value(size, '#');
  OK(RAW(cuMemcpyDtoH)(&value[0], address, size));
  return value;
}

int AttributeOf(CUmodule module, CUfunction_attribute attribute) {
  CUfunction function = nullptr;
  int value = -1;
  OK(RAW(cuModuleGetFunction)(&function, module, "add"));
  OK(RAW(cuFuncGetAttribute)(&value, attribute, function));
  return value;
}

template <typename T>
void Append(T value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A container with nothing but that machine code.
std::string Contain(std::string cubin, std::uint32_t architecture) {
  cubin.resize((cubin.size() + 7) / 8 * 8);
  constexpr std::uint32_t kMemberHeader = 64;
  std::string bytes;
  Append(std::uint32_t{0xba55ed50}, &bytes);
  Append(std::uint16_t{1}, &bytes);
  Append(std::uint16_t{16}, &bytes);
  Append(std::uint64_t{kMemberHeader + cubin.size()}, &bytes);
  Append(std::uint16_t{2}, &bytes);
  Append(std::uint16_t{0x101}, &bytes);
  Append(kMemberHeader, &bytes);
  Append(std::uint64_t{cubin.size()}, &bytes);
  Append(std::uint64_t{0}, &bytes);
  Append(std::uint32_t{0x10008}, &bytes);
  Append(architecture, &bytes);
  Append(std::uint64_t{0}, &bytes);
  Append(std::uint64_t{0x11}, &bytes);
  Append(std::uint64_t{0}, &bytes);
  Append(std::uint64_t{0}, &bytes);
  return bytes + cubin;
}

}  // namespace

BOOST_AUTO_TEST_CASE(text_and_machine_code_have_the_same_parameters) {
  const InContext in;
  BOOST_CHECK(LayoutsOf(kParameters) == kLayouts);
  BOOST_CHECK(LayoutsOf(Compile(kParameters)) == kLayouts);
}

BOOST_AUTO_TEST_CASE(parameters_of_more_than_four_kilobytes) {
  const InContext in;
  const std::map<std::string, Layout> layouts = {{"large", {{0, 8}, {8, 32000}, {32008, 2}}}};
  BOOST_CHECK(LayoutsOf(kLarge) == layouts);
  BOOST_CHECK(LayoutsOf(Compile(kLarge)) == layouts);
}

BOOST_AUTO_TEST_CASE(text_and_machine_code_have_the_same_variables_and_attributes) {
  const InContext in;
  for (const std::string& image : {kVariables, Compile(kVariables)}) {
    CUmodule module = nullptr;
    OK(RAW(cuModuleLoadData)(&module, image.data()));
    BOOST_TEST(ValueOf(module, "number") == std::string("\7\0\0\0", 4));
    BOOST_TEST(ValueOf(module, "bytes") == "\1\2\3" + std::string(9, '\0'));
    BOOST_TEST(ValueOf(module, "zero") == std::string(4, '\0'));
    BOOST_TEST(ValueOf(module, "fixed") == std::string("\5\0\0\0\6\0\0\0", 8));
    const int registers = AttributeOf(module, CU_FUNC_ATTRIBUTE_NUM_REGS);
    BOOST_TEST(registers > 0);
    BOOST_TEST(registers < 32);
    BOOST_TEST(AttributeOf(module, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 0);
    BOOST_TEST(AttributeOf(module, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES) == 8);
    BOOST_TEST(AttributeOf(module, CU_FUNC_ATTRIBUTE_PTX_VERSION) == 50);
    BOOST_TEST(AttributeOf(module, CU_FUNC_ATTRIBUTE_BINARY_VERSION) == 90);
    OK(RAW(cuModuleUnload)(module));
  }
}

// Each keeps to its own room.
BOOST_AUTO_TEST_CASE(variables_that_damage_gives_one_name, *cudasim_test::OnlySim()) {
  const InContext in;
  std::string cubin = Compile(R"(.version 7.0
.target sm_50
.address_size 64
.visible .global .align 4 .u32 variable_1 = 7;
.visible .global .align 4 .u32 variable_2[400] = {8, 9};
)");
  size_t at = 0;
  while ((at = cubin.find("variable_2", at)) != std::string::npos) cubin[at + 9] = '1';
  CUmodule module = nullptr;
  OK(RAW(cuModuleLoadData)(&module, cubin.data()));
  const std::string value = ValueOf(module, "variable_1");
  BOOST_TEST(static_cast<int>(value[0]) == (value.size() == 4 ? 7 : 8));
  OK(RAW(cuModuleUnload)(module));
}

BOOST_AUTO_TEST_CASE(machine_code_is_loaded_as_a_library) {
  const InContext in;
  const std::string cubin = Compile(kParameters);
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  unsigned count = 0;
  Jit jit({{CU_JIT_LOG_VERBOSE, 1}});
  OK(jit.LoadLibrary(&library, cubin.data()));
  BOOST_TEST(jit.InfoSize() == 0u);
  BOOST_TEST(jit.Milliseconds() == 0);
  OK(RAW(cuLibraryGetKernelCount)(&count, library));
  BOOST_TEST(count == kLayouts.size());
  OK(RAW(cuLibraryGetKernel)(&kernel, library, "mixed"));
  OK(RAW(cuKernelGetFunction)(&function, kernel));
  IS(RAW(cuLibraryGetKernel)(&kernel, library, "nosuch"), NOT_FOUND);
  OK(RAW(cuLibraryUnload)(library));
}

BOOST_AUTO_TEST_CASE(machine_code_runs) {
  const InContext in;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  cudasim::Sim::RegisterKernel("nothing", [](const cudasim::SimLaunch&) { return CUDA_SUCCESS; });
  OK(RAW(cuModuleLoadData)(&module, Compile(kPtx).data()));
  OK(RAW(cuModuleGetFunction)(&function, module, "nothing"));
  OK(RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  OK(RAW(cuCtxSynchronize)());
  OK(RAW(cuModuleUnload)(module));
}

BOOST_AUTO_TEST_CASE(a_container_of_machine_code_is_for_its_architecture) {
  const InContext in;
  const std::string cubin = Compile(kParameters);
  BOOST_CHECK(LayoutsOf(Contain(cubin, 90)) == kLayouts);
  CUmodule module = nullptr;
  Jit jit;
  IS(jit.LoadModule(&module, Contain(cubin, 80).data()), NO_BINARY_FOR_GPU);
  BOOST_TEST(jit.Error() == "");
}

BOOST_AUTO_TEST_SUITE_END()
