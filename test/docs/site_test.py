#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""site_test.py SOURCE_ROOT DOXYGEN

Makes the site and the reference: Doxygen warns of nothing, and every page is there.
"""

import pathlib
import subprocess
import sys
import tempfile

root, doxygen = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
failures = []

with tempfile.TemporaryDirectory(prefix="cuguest-site-") as name:
    output = pathlib.Path(name)
    text = (root / "docs" / "Doxyfile.in").read_text()
    for key, value in {"HTML": "YES", "OUTPUT": name, "SOURCE": root, "VERSION": "test", "XML": "YES"}.items():
        text = text.replace(f"@{key}@", str(value))
    (output / "Doxyfile").write_text(text)
    run = subprocess.run([doxygen, str(output / "Doxyfile")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode:
        failures.append(f"doxygen: exit status {run.returncode}\n{run.stdout}")
    pages = sorted((root / "docs").rglob("*.md"))
    titles = {page.name: page.read_text().splitlines()[0].lstrip("# ").split(" {#")[0] for page in pages}
    made = "".join(page.read_text() for page in (output / "html").glob("*.html"))
    for page, title in titles.items():
        if f"<div class=\"title\">{title}" not in made.replace("&#39;", "'"):
            failures.append(f"docs/{page} is not in the site under its title, {title}")

for failure in failures:
    print("not ok:", failure)
total = len(titles) + 1
print(f"cases: {total - len(failures)} passed, {len(failures)} failed, 0 skipped")
sys.exit(1 if failures or len(titles) < 10 else 0)
