// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/typed_kernel.h"

#include "test/objects/launch/launches.h"

BOOST_AUTO_TEST_SUITE(typed_kernel)

namespace {

using namespace cuguest_launches;
using cuguest::DeviceView;
using cuguest::TypedKernel;

using CountUpKernel = TypedKernel<void(unsigned, unsigned, DevicePtr<unsigned>)>;

template <typename Typed, typename = void, typename... Args>
struct CanLaunch : std::false_type {};
template <typename Typed, typename... Args>
struct CanLaunch<Typed,
                 std::void_t<decltype(std::declval<const Typed&>().Launch(
                     LaunchShape(), StreamRef(), std::declval<Args>()...))>,
                 Args...> : std::true_type {};
template <typename... Args>
constexpr bool kCanCountUp = CanLaunch<CountUpKernel, void, Args...>::value;

static_assert(kCanCountUp<unsigned, unsigned, DevicePtr<unsigned>>);
static_assert(kCanCountUp<int, char, DeviceView<unsigned>>, "converted, as for a function");
static_assert(!kCanCountUp<unsigned, unsigned, unsigned*>, "it may be one of the host");
static_assert(!kCanCountUp<unsigned, unsigned>, "too few");
static_assert(!kCanCountUp<unsigned, unsigned, DevicePtr<unsigned>, int>, "too many");
static_assert(!kCanCountUp<unsigned, unsigned, DevicePtr<float>>);
static_assert(!kCanCountUp<unsigned, unsigned, DeviceView<const unsigned>>);
static_assert(!kCanCountUp<unsigned, unsigned, CUdeviceptr>);
static_assert(!kCanCountUp<unsigned, unsigned, DeviceBuffer<unsigned>>);

}  // namespace

BOOST_AUTO_TEST_CASE(converts_and_launches) {
  Bench<unsigned> bench(8);
  const Module module = LoadLaunchKernels(bench.ref());
  const CountUpKernel count_up = CountUpKernel::Of(module.GetKernel("count_up").value());
  BOOST_TEST(count_up.kernel().name() == "count_up");
  const Undisturbed undisturbed;
  const double begin = 2.5;
  SUCCEEDS(count_up.Launch({1, 8}, bench.stream(), 8, begin, bench.buffer().view()));
  BOOST_TEST(bench.Take() == std::vector<unsigned>(8, 2));
}

BOOST_AUTO_TEST_CASE(a_wrong_signature_is_seen_at_the_launch,
                     *NeedsDriver(12040, "cuFuncGetParamInfo, by which parameters are checked")) {
  Bench<unsigned> bench(1);
  const Module module = LoadLaunchKernels(bench.ref());
  const Kernel kernel = module.GetKernel("count_up").value();
  const auto wide = TypedKernel<void(double, unsigned, DevicePtr<unsigned>)>::Of(kernel);
  REFUSES(wide.Launch({}, bench.stream(), 1, 1, bench.memory()), kInvalidArgument, "parameter 1",
          "8 bytes");
  const auto none = TypedKernel<void()>::Of(kernel);
  REFUSES(none.Launch({}, bench.stream()), kInvalidArgument, "takes 3 parameters");
}

BOOST_AUTO_TEST_CASE(an_empty_one) {
  const Bench<unsigned> bench(1);
  BOOST_TEST(!CountUpKernel().kernel());
  REFUSES(CountUpKernel().Launch({}, bench.stream(), 1, 1, DevicePtr<unsigned>()),
          kFailedPrecondition, "empty kernel");
}

BOOST_AUTO_TEST_SUITE_END()
