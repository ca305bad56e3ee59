/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The words in which a text of the library tells a reader what to do, in a case that does it and
 * sees that it comes true: REFUSES(status, kInvalidArgument, Advised("use the Async form")). For C,
 * too. test/docs/advice_test.py holds them against the texts of the sources. */

#ifndef CUGUEST_TEST_SUPPORT_ADVISED_H_
#define CUGUEST_TEST_SUPPORT_ADVISED_H_

static inline const char* Advised(const char* words) { return words; }

#endif  // CUGUEST_TEST_SUPPORT_ADVISED_H_
