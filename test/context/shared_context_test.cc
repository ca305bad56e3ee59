// SPDX-License-Identifier: Apache-2.0

#include "cuguest/shared_context.h"
BOOST_AUTO_TEST_SUITE(shared_context)
BOOST_AUTO_TEST_SUITE_END()
