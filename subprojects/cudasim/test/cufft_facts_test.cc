// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuFFT, as a program with contexts of its own sees it.

#include <cufft.h>

#include <memory>
#include <utility>

#include "test/math_library.h"

BOOST_AUTO_TEST_SUITE(cufft_facts)

using namespace cudasim_facts;

namespace {

constexpr int kSmall = 1024;   // needs no work area
constexpr int kLarge = 65536;  // needs one
constexpr size_t kLargeArea = size_t{kLarge} * sizeof(cufftComplex);

struct Fft {
  static constexpr int kDeadContext = CUFFT_INTERNAL_ERROR;
  static constexpr int kRefused = CUFFT_INTERNAL_ERROR;
  static constexpr int kElsewhere = CUFFT_EXEC_FAILED;
  static constexpr int kImplicit = CUFFT_EXEC_FAILED;
  static constexpr int kForkedCreate = CUFFT_INTERNAL_ERROR;
  static constexpr int kForkedRun = CUFFT_EXEC_FAILED;
  static constexpr bool kCreateBinds = false;
  static constexpr bool kRunBinds = false;
  static constexpr bool kDestroyBinds = true;

  explicit Fft(int length = kSmall) : size(length) {}
  ~Fft() {
    if (plan >= 0) Destroy();
  }
  int Create() {
    const int status = cufftPlan1d(&plan, size, CUFFT_C2C, 1);
    if (status != 0) plan = -1;
    return status;
  }
  int CreateWithoutArea(size_t* area) {
    FINE(cufftCreate(&plan));
    FINE(cufftSetAutoAllocation(plan, 0));
    return cufftMakePlan1d(plan, size, CUFFT_C2C, 1, area);
  }
  int SetStream(CUstream stream) { return cufftSetStream(plan, stream); }
  int Destroy() { return cufftDestroy(std::exchange(plan, -1)); }
  int Run() { return cufftExecC2C(plan, in(), out(), CUFFT_FORWARD); }

  void Fill() {
    std::vector<cufftComplex> ones(static_cast<size_t>(size), cufftComplex{1, 0});
    from = std::make_unique<Values<cufftComplex>>(ones);
    to = std::make_unique<Values<cufftComplex>>(ones);
    Clear();
  }
  void Clear() { to->Write(std::vector<cufftComplex>(static_cast<size_t>(size))); }
  bool IsRight() const {
    const std::vector<cufftComplex> result = to->Read();
    return result[0].x == static_cast<float>(size) && result[1].x == 0;
  }
  cufftComplex* in() const { return from->get(); }
  cufftComplex* out() const { return to->get(); }

  int size;
  cufftHandle plan = -1;
  std::unique_ptr<Values<cufftComplex>> from;
  std::unique_ptr<Values<cufftComplex>> to;
};

struct LargeFft : Fft {
  LargeFft() : Fft(kLarge) {}
};

// Whose second plan is given back after the capture in which it was made.
struct TwoFfts : Fft {
  ~TwoFfts() {
    if (second >= 0) FINE(cufftDestroy(second));
  }
  cufftHandle second = -1;
};

Values<char> Area(size_t size) { return Values<char>(std::vector<char>(size, 0)); }

}  // namespace

CUDASIM_MATH_FACTS(Fft)

BOOST_AUTO_TEST_CASE(what_ends_captures) {
  CheckCreatingInCaptures<Fft>();
  CheckUsingInCaptures<Fft>(Ends::kStrict);
  CheckInCaptures<LargeFft>({
      {"run beside the capture", Ends::kNone, 0,
       [](LargeFft& fft, const Guest&) { return fft.Run(); }},
      {"begin and drop a plan", Ends::kNone, 0,
       [](LargeFft&, const Guest&) {
         cufftHandle plan = 0;
         FINE(cufftCreate(&plan));
         FINE(cufftSetAutoAllocation(plan, 0));
         return static_cast<int>(cufftDestroy(plan));
       }},
      {"replace its own work area", Ends::kStrict, 0,
       [](LargeFft& fft, const Guest&) {
         return static_cast<int>(cufftSetWorkArea(fft.plan, fft.out()));
       }},
  });
  CheckInCaptures<TwoFfts>({
      {"plan what was planned", Ends::kNone, 0,
       [](TwoFfts& fft, const Guest&) {
         return static_cast<int>(cufftPlan1d(&fft.second, kSmall, CUFFT_C2C, 1));
       }},
      {"estimate", Ends::kStrict, 0,
       [](TwoFfts&, const Guest&) {
         size_t bytes = 0;
         return static_cast<int>(cufftEstimate1d(kSmall, CUFFT_C2C, 1, &bytes));
       }},
  });
}

// Its code is compiled then, which even a relaxed capture does not survive.
BOOST_AUTO_TEST_CASE(a_size_with_a_large_factor_cannot_be_planned_in_a_capture) {
  const Guest guest;
  Fft fft;
  size_t bytes = 0;
  FINE(cufftCreate(&fft.plan));
  FINE(cufftSetAutoAllocation(fft.plan, 0));
  OK(Begin(guest.stream, kRelaxed));
  BOOST_CHECK_EQUAL(cufftMakePlan1d(fft.plan, 13 * 1009, CUFFT_C2C, 4, &bytes),
                    CUFFT_INTERNAL_ERROR);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kLost);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_CASE(destroying_a_plan_waits_for_its_context) { CheckDestroyingWaits<Fft>(); }

// Its own is freed at once.
BOOST_AUTO_TEST_CASE(a_work_area_of_the_callers) {
  const Guest guest;
  const Values<char> area = Area(kLargeArea);
  LargeFft fft;
  fft.Fill();
  size_t size = 0;
  FINE(fft.CreateWithoutArea(&size));
  BOOST_TEST(size == kLargeArea);
  size = 0;
  FINE(cufftGetSize(fft.plan, &size));
  BOOST_TEST(size == kLargeArea);
  FINE(fft.SetStream(guest.stream));
  FINE(cufftSetWorkArea(fft.plan, area.get()));
  FINE(fft.Run());
  BOOST_TEST(fft.IsRight());
  const Captured<Fft> captured(fft, guest);
  captured.CheckReplay(fft);
  OK(RAW(cuCtxSynchronize)());
}

BOOST_AUTO_TEST_CASE(a_small_plan_needs_no_work_area) {
  const Guest guest;
  Fft fft;
  fft.Fill();
  size_t size = 77;
  FINE(fft.CreateWithoutArea(&size));
  BOOST_TEST(size == 0u);
  FINE(fft.Run());
  BOOST_TEST(fft.IsRight());
}

// Destroying its plan frees some memory of the host's twice: one of 1024 points aborts. So it is
// left behind.
BOOST_AUTO_TEST_CASE(a_plan_whose_context_is_over) {
  const Guest guest;
  OwnContext context;
  SetStack({context.get()});
  Fft fft;
  FINE(fft.Create());
  fft.Fill();
  FINE(fft.Run());
  BOOST_TEST(fft.IsRight());
  fft.from->GiveUp();
  fft.to->GiveUp();
  SetStack({guest.context.get()});
  OK(RAW(cuCtxDestroy)(context.release()));
  fft.Fill();
  FINE(fft.SetStream(guest.stream));
  BOOST_CHECK_EQUAL(fft.Run(), CUFFT_EXEC_FAILED);
  OK(RAW(cuCtxSynchronize)());
  FINE(fft.Create());
  FINE(fft.Run());
  BOOST_TEST(fft.IsRight());
}

// The same of a primary context that has another incarnation by now.
CHILD(primary_is_revived) {
  CUcontext primary = nullptr;
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  SetStack({primary});
  Fft fft;
  CHECK(fft.Create() == 0);
  CHECK(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  fft.Fill();
  CHECK(fft.Run() == CUFFT_EXEC_FAILED);
  CHECK(fft.Create() == 0);
  CHECK(fft.Run() == 0);
  CHECK(fft.IsRight());
  return 0;
}

BOOST_AUTO_TEST_CASE(a_plan_of_an_earlier_incarnation_of_the_primary_context) {
  REQUIRE_CHILD_PASSES("primary_is_revived");
}

BOOST_AUTO_TEST_CASE(no_plan_is_an_error) {
  const Guest guest;
  Fft fft;
  fft.Fill();
  for (const cufftHandle none : {0, 777}) {
    fft.plan = none;
    BOOST_CHECK_EQUAL(fft.SetStream(nullptr), CUFFT_INVALID_PLAN);
    BOOST_CHECK_EQUAL(fft.Run(), CUFFT_INVALID_PLAN);
    BOOST_CHECK_EQUAL(fft.Destroy(), CUFFT_INVALID_PLAN);
  }
  FINE(fft.Create());
  const cufftHandle destroyed = fft.plan;
  FINE(fft.Destroy());
  BOOST_CHECK_EQUAL(cufftDestroy(destroyed), CUFFT_INVALID_PLAN);
  BOOST_CHECK_EQUAL(cufftSetStream(destroyed, nullptr), CUFFT_INVALID_PLAN);
  FINE(fft.Create());
  BOOST_TEST(fft.plan == destroyed);  // numbers are used again
  BOOST_CHECK_EQUAL(cufftCreate(nullptr), CUFFT_INVALID_VALUE);
  BOOST_CHECK_EQUAL(cufftPlan1d(nullptr, kSmall, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(bad_sizes_and_types) {
  const Guest guest;
  // 0 is written, which is no plan's number.
  const auto refuses = [](cufftResult reason, const auto& make) {
    cufftHandle plan = -5;
    BOOST_CHECK_EQUAL(make(&plan), reason);
    BOOST_TEST(plan == 0);
  };
  for (const int size : {0, -1}) {
    refuses(CUFFT_INVALID_SIZE, [&](auto* plan) { return cufftPlan1d(plan, size, CUFFT_C2C, 1); });
    refuses(CUFFT_INVALID_SIZE,
            [&](auto* plan) { return cufftPlan1d(plan, kSmall, CUFFT_C2C, size); });
  }
  refuses(CUFFT_INVALID_SIZE, [](auto* plan) { return cufftPlan2d(plan, 0, 8, CUFFT_C2C); });
  refuses(CUFFT_INVALID_TYPE,
          [](auto* plan) { return cufftPlan1d(plan, 8, OutOfRange<cufftType>(1), 1); });
}

BOOST_AUTO_TEST_CASE(a_plan_is_made_once) {
  const Guest guest;
  Fft fft;
  fft.Fill();
  size_t size = 0;
  int lengths[] = {8, 8, 8, 8};
  FINE(cufftCreate(&fft.plan));
  FINE(fft.SetStream(guest.stream));
  FINE(cufftSetWorkArea(fft.plan, fft.out()));
  FINE(cufftSetAutoAllocation(fft.plan, 0));
  BOOST_CHECK_EQUAL(fft.Run(), CUFFT_INVALID_PLAN);
  BOOST_CHECK_EQUAL(cufftGetSize(fft.plan, &size), CUFFT_INVALID_PLAN);
  const auto many = [&](int rank, int* of) {
    return cufftMakePlanMany(fft.plan, rank, of, nullptr, 1, 0, nullptr, 1, 0, CUFFT_C2C, 1, &size);
  };
  BOOST_CHECK_EQUAL(many(0, lengths), CUFFT_INVALID_VALUE);
  BOOST_CHECK_EQUAL(many(4, lengths), CUFFT_INVALID_VALUE);
  BOOST_CHECK_EQUAL(many(1, nullptr), CUFFT_INVALID_VALUE);
  BOOST_CHECK_EQUAL(cufftMakePlan1d(fft.plan, kSmall, CUFFT_C2C, 1, nullptr), CUFFT_INVALID_VALUE);
  FINE(cufftMakePlan1d(fft.plan, kSmall, CUFFT_C2C, 1, &size));
  BOOST_CHECK_EQUAL(cufftMakePlan1d(fft.plan, kSmall, CUFFT_C2C, 1, &size), CUFFT_INVALID_PLAN);
  // The work area is the output, though the plan needs none.
  BOOST_CHECK_EQUAL(fft.Run(), CUFFT_EXEC_FAILED);
  const Values<char> area(std::vector<char>(kSmall, 0));
  FINE(cufftSetWorkArea(fft.plan, area.get()));
  FINE(fft.Run());
  BOOST_TEST(fft.IsRight());
  for (const int direction : {0, 5}) {
    BOOST_CHECK_EQUAL(cufftExecC2C(fft.plan, fft.in(), fft.out(), direction), CUFFT_INVALID_VALUE);
  }
  auto* const odd = reinterpret_cast<cufftComplex*>(reinterpret_cast<char*>(fft.in()) + 4);
  BOOST_CHECK_EQUAL(cufftExecC2C(fft.plan, odd, fft.out(), CUFFT_FORWARD), CUFFT_INVALID_VALUE);
}

BOOST_AUTO_TEST_SUITE_END()
