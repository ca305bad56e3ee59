// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   audit_advice_rows
//
// Prints the rows of the auditor's advice as JSON, for advice_test.py.

#include <cstdio>

#include "audit/command/advice.h"
#include "audit/command/json.h"

int main() {
  cuguest::audit::JsonWriter json;
  json.BeginArray();
  for (const cuguest::audit::AdviceRow& row : cuguest::audit::AdviceRows()) {
    json.BeginObject();
    json.Add("kind", cuguest::audit::Identifier(row.kind));
    json.Add("of", row.of.words);
    json.Add("plain", row.advice.plain);
    json.Add("cuguest", row.advice.cuguest);
    json.End();
  }
  json.End();
  std::puts(json.Take().c_str());
}
