// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parameters of every built-in vector type and of structs arrive bit by bit, in each of the
// forms that they are passed in; and what is laid out differently on the device is refused.

#include <vector_types.h>

#include <array>

#include "cuguest/objects/typed_kernel.h"
#include "test/objects/launch/launches.h"

BOOST_AUTO_TEST_SUITE(launch_layout)

namespace {

using namespace cuguest_launches;

struct Guide {
  float f;
  float4 f4;
};
struct GuideWithoutAlignment {
  float f;
  Quad f4;
};
struct AlignedQuad {
  alignas(16) float x;
  float y, z, w;
};
struct GuideWithAlignedQuad {
  float f;
  AlignedQuad f4;
};
struct Padded {
  char c;
  double d;
  short s;
  void* pointer;
  char3 c3;
};
struct alignas(16) Aligned {
  float xyzw[4];  // no padding: a compiler need not copy that
};
struct Large {
  unsigned words[1000];
};

class Layouts : public Bench<unsigned char> {
 public:
  Layouts() : Bench(4096) {}
  Kernel Get(const std::string& name) const { return module_.GetKernel("layout_" + name).value(); }
  Bytes Take(std::size_t bytes) {
    Bytes all = Bench::Take();
    all.resize(bytes);
    return all;
  }

 private:
  Module module_ = LoadLayoutKernels(ref());
};

// Bytes that are all different, as far as that goes.
template <typename T>
T Pattern(unsigned char first) {
  T value;
  auto* const bytes = reinterpret_cast<unsigned char*>(&value);
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<unsigned char>(first + i);
  return value;
}

// The bytes of `values`, one behind the other.
template <typename... Ts>
Bytes Joined(const Ts&... values) {
  Bytes bytes;
  const auto append = [&bytes](const void* data, std::size_t size) {
    const auto* const begin = static_cast<const unsigned char*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  (append(&values, sizeof(values)), ...);
  return bytes;
}

template <typename... Ts>
void Arrives(Layouts& layouts, const std::string& name, const Ts&... values) {
  const Kernel kernel = layouts.Get(name);
  const Bytes expected = Joined(values...);
  const auto to = layouts.memory();
  const auto arrived = [&](const absl::Status& status, const char* form) {
    BOOST_TEST(status.ok(), name << " " << form << ": " << status.ToString());
    BOOST_TEST((layouts.Take(expected.size()) == expected), name << " " << form);
  };
  const LaunchShape one;
  arrived(Launch(kernel, one, layouts.stream(), values..., to), "as values");
  arrived(Launch(kernel, one, layouts.stream(), Packed(values..., to)), "packed");
  const auto typed = cuguest::TypedKernel<void(Ts..., DevicePtr<unsigned char>)>::Of(kernel);
  arrived(typed.Launch(one, layouts.stream(), values..., layouts.buffer().view()), "typed");
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_vector_type) {
  Layouts layouts;
#define CUGUEST_ARRIVES(Type, ...) \
  Arrives(layouts, #Type, Pattern<char>(1), Pattern<Type>(2), Pattern<char>(200));
  CUGUEST_VECTOR_TYPES(CUGUEST_ARRIVES)
#if CUDA_VERSION >= 13000
  CUGUEST_VECTOR_TYPES_WITH_ALIGNMENT(CUGUEST_ARRIVES)
#endif
}

BOOST_AUTO_TEST_CASE(the_guides_list) {
  Layouts layouts;
  Arrives(layouts, "mixed", Pattern<int>(1), Pattern<float4>(10), Pattern<char>(40),
          Pattern<float>(50), Pattern<CUdeviceptr>(60), Pattern<float2>(80));
}

BOOST_AUTO_TEST_CASE(basic_types_in_the_middle_of_words) {
  Layouts layouts;
  Arrives(layouts, "basic", true, Pattern<double>(10), Pattern<char>(20), Pattern<long long>(30),
          Pattern<char>(40), Pattern<long>(50), Pattern<char>(60), Pattern<unsigned short>(70),
          Pattern<char>(80), Pattern<float>(90));
}

BOOST_AUTO_TEST_CASE(structs) {
  Layouts layouts;
  Arrives(layouts, "struct", Pattern<char>(1), Pattern<Guide>(10), Pattern<char>(60));
  Arrives(layouts, "struct", Pattern<char>(1), Pattern<GuideWithAlignedQuad>(10),
          Pattern<char>(60));
  Arrives(layouts, "aligned", Pattern<char>(1), Pattern<Aligned>(10), Pattern<char>(60));
  Arrives(layouts, "large", Pattern<Large>(1));
}

// What is between the members is not copied on every device.
BOOST_AUTO_TEST_CASE(a_struct_with_padding) {
  Layouts layouts;
  const Kernel kernel = layouts.Get("padded");
  const auto value = Pattern<Padded>(10);
  const auto to = layouts.memory();
  const auto arrived = [&](const absl::Status& status) {
    SUCCEEDS(status);
    const Bytes bytes = layouts.Take(sizeof(short) + sizeof(Padded) + 1);
    Padded seen;
    std::memcpy(&seen, bytes.data() + sizeof(short), sizeof(Padded));
    BOOST_TEST((Joined(seen.c, seen.d, seen.s, seen.pointer, seen.c3) ==
                Joined(value.c, value.d, value.s, value.pointer, value.c3)));
    BOOST_TEST(bytes.back() == 'a');
  };
  const short before = 1;
  arrived(Launch(kernel, {}, layouts.stream(), before, value, 'a', to));
  arrived(Launch(kernel, {}, layouts.stream(), Packed(before, value, 'a', to)));
}

// By the specialisation of ParamTraits above.
BOOST_AUTO_TEST_CASE(a_struct_that_is_a_vector_on_the_device) {
  Layouts layouts;
  Arrives(layouts, "float4", Pattern<char>(1), Pattern<Quad>(10), Pattern<char>(60));
}

// The guide's myStruct, without what aligns its float4.
BOOST_AUTO_TEST_CASE(the_guides_struct_declared_without_alignment,
                     *NeedsDriver(12040, "cuFuncGetParamInfo, by which parameters are checked")) {
  Layouts layouts;
  const Kernel kernel = layouts.Get("struct");
  const auto value = Pattern<GuideWithoutAlignment>(1);
  const auto to = layouts.memory();
  const Undisturbed undisturbed;
  for (const absl::Status& status :
       {Launch(kernel, {}, layouts.stream(), 'b', value, 'a', to),
        Launch(kernel, {}, layouts.stream(), Packed('b', value, 'a', to))}) {
    REFUSES(status, kInvalidArgument, "\"layout_struct\"",
            "parameter 2 of 4 is 32 bytes at offset 16 in the kernel",
            "20 bytes at offset 4 is given", "laid out differently", "alignas(16)");
  }
}

// As values only the sizes count: each is copied from where it is. Packed, it would be read
// from the wrong place.
BOOST_AUTO_TEST_CASE(four_floats_for_a_vector,
                     *NeedsDriver(12040, "cuFuncGetParamInfo, by which parameters are checked")) {
  Layouts layouts;
  const Kernel kernel = layouts.Get("float4");
  using Floats = std::array<float, 4>;
  const auto value = Pattern<Floats>(1);
  const auto to = layouts.memory();
  SUCCEEDS(Launch(kernel, {}, layouts.stream(), 'b', value, 'a', to));
  BOOST_TEST((layouts.Take(18) == Joined('b', value, 'a')));
  REFUSES(Launch(kernel, {}, layouts.stream(), Packed('b', value, 'a', to)), kInvalidArgument,
          "parameter 2 of 4 is 16 bytes at offset 16", "16 bytes at offset 4");
}

// What one launch took says nothing of another list of parameters, however much the two have in
// common. (These two, of 1 byte alignment, have one FNV-1a in 64 bits.)
BOOST_AUTO_TEST_CASE(a_list_is_held_against_the_kernels_and_not_against_one_like_it,
                     *NeedsDriver(12040, "cuFuncGetParamInfo, by which parameters are checked")) {
  constexpr std::size_t kRight[] = {345, 429, 418, 59, 417, 490, 335};
  constexpr std::size_t kLike[] = {224, 169, 488, 217, 463, 235, 200};
  const Owner owner;
  const StreamRef stream = StreamRef::Borrow(owner.stream(), owner.ref());
  std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry takes(";
  for (std::size_t i = 0; i < std::size(kRight); ++i) {
    text += (i == 0 ? ".param .align 1 .b8 p" : ", .param .align 1 .b8 p") + std::to_string(i) +
            "[" + std::to_string(kRight[i]) + "]";
  }
  Sim::RegisterKernel("takes", [](const SimLaunch&) { return CUDA_SUCCESS; });
  const CodeImage image = CodeImage::FromPtx(text + ")\n{\n ret;\n}\n", "takes").value();
  const Module module = Module::LoadIn(owner.ref(), image).value();
  const Kernel kernel = module.GetKernel("takes").value();
  const Bytes zeros(512);
  const auto launch = [&](const auto& sizes) {
    ParamBuffer params;
    for (const std::size_t size : sizes) SUCCEEDS(params.AddBytes(zeros.data(), size, 1));
    return Launch(kernel, {}, stream, params);
  };
  SUCCEEDS(launch(kRight));
  REFUSES(launch(kLike), kInvalidArgument, "parameter 1 of 7 is 345 bytes at offset 0",
          "224 bytes");
  for (std::size_t i = 0; i < std::size(kRight); ++i) {  // one byte more, and one less
    std::vector<std::size_t> sizes(std::begin(kRight), std::end(kRight));
    ++sizes[i];
    REFUSES(launch(sizes), kInvalidArgument, "parameter " + std::to_string(i + 1));
    sizes[i] -= 2;
    REFUSES(launch(sizes), kInvalidArgument, "parameter " + std::to_string(i + 1));
  }
  REFUSES(launch(std::vector<std::size_t>(std::begin(kRight), std::end(kRight) - 1)),
          kInvalidArgument, "takes 7 parameters, and 6 are given");
  SUCCEEDS(launch(kRight));
  SUCCEEDS(stream.Synchronize());
}

BOOST_AUTO_TEST_SUITE_END()
