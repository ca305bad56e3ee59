// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries that are not there, or are not what they should be. This program is linked with none
// of them.

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "cuguest/libraries/cublas.h"
#include "cuguest/libraries/cufft.h"
#include "cuguest/libraries/cusolver.h"
#include "cuguest/libraries/cusparse.h"
#include "cuguest/libraries/nccl.h"
#include "test/objects/memory/memories.h"
#include "test/support/files.h"

namespace {

namespace runtime = cuguest::runtime;
using absl::StatusCode;
using cuguest_test::NoRefusal;

template <typename Library>
void Refuses(const std::string& name, StatusCode code, const std::vector<std::string>& words) {
  const std::string no_refusal = NoRefusal(Library::Open(name.c_str()).status(), code, words);
  BOOST_TEST(no_refusal.empty(), no_refusal);
}

template <typename Library>
void RefusesWhatIsNotThere(const std::string& first_entry) {
  Refuses<Library>("libno_such_library.so.13", StatusCode::kUnavailable,
                   {"load libno_such_library.so.13", "cannot open shared object", "library path"});
  Refuses<Library>("/", StatusCode::kUnavailable, {"load /"});
  Refuses<Library>("libm.so.6", StatusCode::kUnimplemented,
                   {"find " + first_entry + " in libm.so.6", "not there"});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(library_missing)

BOOST_AUTO_TEST_CASE(a_library_is_not_there) {
  RefusesWhatIsNotThere<runtime::CublasLibrary>("cublasCreate_v2");
  RefusesWhatIsNotThere<runtime::CufftLibrary>("cufftCreate");
  RefusesWhatIsNotThere<runtime::CusolverLibrary>("cusolverDnCreate");
  RefusesWhatIsNotThere<runtime::CusparseLibrary>("cusparseCreate");
  RefusesWhatIsNotThere<runtime::NcclLibrary>("ncclGetVersion");
}

BOOST_AUTO_TEST_CASE(a_file_is_no_library) {
  char name[] = "/tmp/cuguest-no-library-XXXXXX";
  const int file = mkstemp(name);
  BOOST_TEST_REQUIRE(file >= 0);
  BOOST_TEST(write(file, "no library", 10) == 10);
  close(file);
  Refuses<runtime::CublasLibrary>(name, StatusCode::kUnavailable, {name});
  unlink(name);
}

BOOST_AUTO_TEST_CASE(a_library_is_of_another_version) {
  const std::string other = cuguest_test::FindBeside("other_cublas.so");
  BOOST_TEST_REQUIRE(!other.empty());
  Refuses<runtime::CublasLibrary>(
      other, StatusCode::kFailedPrecondition,
      {"its major version is 99", "compiled for " + std::to_string(CUBLAS_VER_MAJOR)});
}

// Statuses need no library.
BOOST_AUTO_TEST_CASE(codes_have_names_without_it) {
  BOOST_TEST(std::string(runtime::ToStatus(CUBLAS_STATUS_ALLOC_FAILED, "multiply").message())
                 .find("multiply: CUBLAS_STATUS_ALLOC_FAILED (3): ") == 0U);
  const absl::Status unknown = runtime::ToStatus(static_cast<cusparseStatus_t>(10), "", "a matrix");
  BOOST_TEST(std::string(unknown.message()).find("a matrix: CUSPARSE_STATUS_NOT_SUPPORTED") == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
