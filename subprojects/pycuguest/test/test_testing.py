# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""undisturbed(), and the plugin for pytest."""

import asyncio
import ctypes
import inspect
import os
import re
import subprocess
import sys
import textwrap

import pytest

import cuguest
from conftest import compile_library
from cuguest.testing import Disturbed, undisturbed


def test_nothing_left_is_silent(driver, two):
    host, guest = two
    with undisturbed():
        with cuguest.guard(guest):
            pass
        driver.push(guest)
        driver.pop()
    assert driver.stack() == [host]


@pytest.mark.parametrize("disturb", [
    lambda driver, host, guest: driver.set(guest),
    lambda driver, host, guest: driver.push(host),
    lambda driver, host, guest: driver.pop(),
], ids=["replaced", "pushed", "popped"])
def test_stack_that_is_another(driver, two, disturb):
    host, guest = two
    driver.push(host)
    with pytest.raises(Disturbed, match="the context stack of the thread was") as told:
        with undisturbed():
            disturb(driver, host, guest)
    assert f"{host:#x}" in str(told.value)


def test_entry_below_the_current(driver, two):
    host, guest = two
    driver.push(host)
    with pytest.raises(Disturbed):
        with undisturbed():
            driver.pop()
            driver.set(guest)
            driver.push(host)


def test_primary_that_was_created(driver):
    if driver.is_active():
        pytest.skip("somebody in this process holds the primary context")
    held = []
    with pytest.raises(Disturbed, match="primary context of device 0 is active, and was not"):
        with undisturbed():
            held.append(cuguest.retain_primary(0))
    with pytest.raises(Disturbed, match="was active, and is not"):
        with undisturbed():
            held.pop().release()
    with undisturbed(primaries=False):
        held.append(cuguest.retain_primary(0))


def test_primary_that_was_made_anew(inactive):
    """By a reset, or by a release and another reference; and one that is only retained meanwhile."""
    held = cuguest.retain_primary(0)
    with undisturbed():
        cuguest.retain_primary(0).release()
    with pytest.raises(Disturbed, match="primary context of device 0 was reset or released, and created anew"):
        with undisturbed():
            inactive.cuDevicePrimaryCtxReset_v2(0)
            more = cuguest.retain_primary(0)
    more.release()
    held.release()


def test_capture_mode_that_is_another(driver):
    mode = ctypes.c_int(2)
    with pytest.raises(Disturbed, match="mode was global, and is relaxed"):
        with undisturbed():
            driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    mode.value = 2
    driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    assert mode.value == 0
    driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))


def test_flags_of_a_primary(inactive):
    """Set in the block, of one that is active and of one that is not; seeing them creates none."""
    held = cuguest.retain_primary(0)
    for hold in (False, True):
        if not hold:
            held.release()
        else:
            held = cuguest.retain_primary(0)
        with pytest.raises(Disturbed, match=r"flags of the primary context of device 0 were 0x\w+, and are 0x\w*[4c]"):
            with undisturbed():
                inactive.cuDevicePrimaryCtxSetFlags_v2(0, 4)
        inactive.cuDevicePrimaryCtxSetFlags_v2(0, 0)
        assert inactive.is_active() == hold
    held.release()


@pytest.mark.parametrize("disturb", [
    lambda driver, host, guest: driver.set(guest),
    lambda driver, host, guest: driver.push(host),
    lambda driver, host, guest: driver.set(None),
    lambda driver, host, guest: (driver.push(guest), driver.destroy(guest)),
], ids=["replaced", "pushed", "emptied", "destroyed"])
@pytest.mark.parametrize("error", [None, KeyError], ids=str)
def test_stack_is_restored(driver, two, disturb, error):
    """The next test begins as this one did."""
    host, guest = two
    driver.push(guest)
    driver.push(host)
    with pytest.raises(error or Disturbed):
        with undisturbed():
            disturb(driver, host, guest)
            if error is not None:
                raise error
    assert driver.stack() == [host, *([guest] if guest in driver.made else []), host]


def test_as_a_decorator(driver, two):
    """Each call has its own look."""
    host, guest = two

    @undisturbed()
    def inner(depth):
        driver.push(guest)
        if depth > 0:
            inner(depth - 1)
        driver.pop()

    inner(3)
    with pytest.raises(Disturbed):
        undisturbed()(lambda: driver.push(guest))()
    assert driver.stack() == [host]


def test_coroutine_functions(driver, two):
    """It is awaited inside; the coroutine alone does nothing."""
    host, guest = two

    @undisturbed()
    async def leaves(depth):
        """Its text."""
        await asyncio.sleep(0)
        driver.push(guest)
        if depth > 0:
            driver.pop()
        return depth

    assert inspect.iscoroutinefunction(leaves) and leaves.__doc__ == "Its text."
    assert asyncio.run(leaves(1)) == 1
    with pytest.raises(Disturbed):
        asyncio.run(leaves(depth=0))
    assert driver.stack() == [host]


def test_generators_are_refused():
    def generator():
        yield

    async def asynchronous():
        yield

    for function in (generator, asynchronous):
        with pytest.raises(TypeError, match=function.__name__):
            undisturbed()(function)


def test_exception_goes_on(driver, two):
    with pytest.raises(KeyError):
        with undisturbed():
            driver.pop()
            raise KeyError
    assert driver.stack() == [two[0]]


def test_destroyed_context_below(driver, two):
    """The look stops at it, and takes nothing off."""
    host, guest = two
    driver.push(guest)
    driver.push(host)
    driver.destroy(guest)
    with undisturbed():
        pass
    assert driver.current() == host
    while driver.calls.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())) == 0:
        pass


LIBRARY = """
    import ctypes
    driver = ctypes.CDLL("libcuda.so.1")

    def probe(left=True):
        made = ctypes.c_void_p()
        driver.cuInit(0)
        driver.cuCtxCreate_v2(ctypes.byref(made), 0, 0)
        if not left:
            driver.cuCtxDestroy_v2(made)
"""
# The same for Pythons whose functions the auditor does not tell.
LIBRARY_OF_C = """
    import ctypes, pathlib
    library = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libprobe.so")))

    def probe(left=True):
        assert library.probe(left) == 0
"""
C = """
#include <dlfcn.h>
int probe(int left) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*create)(void**, unsigned, int), (*destroy)(void*), code;
  void* made = 0;
  *(void**)&create = dlsym(driver, "cuCtxCreate_v2");
  *(void**)&destroy = dlsym(driver, "cuCtxDestroy_v2");
  code = create(&made, 0, 0);
  if (code == 0 && !left) code = destroy(made);
  return code;
}
"""
TESTS = """
    import ctypes, pytest
    import library
    driver = ctypes.CDLL("libcuda.so.1")

    @pytest.fixture
    def host():
        made = ctypes.c_void_p()
        driver.cuInit(0)
        driver.cuCtxCreate_v2(ctypes.byref(made), 0, 0)
        yield
        driver.cuCtxSynchronize()

    def test_clean(host, MORE):
        library.probe(left=False)

    def test_leaves(host, MORE):
        library.probe()

    def test_clean_again(host, MORE):
        library.probe(left=False)

    def test_fails(MORE):
        assert 1 == 2

    def test_skips():
        pytest.skip("so")
"""


@pytest.fixture
def library(pytester):
    package = pytester.mkpydir("library")
    is_read = sys.version_info[:2] in ((3, 12), (3, 13))

    def tests(more, is_read=is_read):
        (package / "__init__.py").write_text(textwrap.dedent(LIBRARY if is_read else LIBRARY_OF_C))
        if not is_read:
            compile_library(package, "libprobe.so", C)
        pytester.makepyfile(textwrap.dedent(TESTS.replace("MORE", more)))

    return tests


def test_fixture_fails_the_test(driver, library, pytester):
    library("undisturbed", is_read=True)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=2, skipped=1)
    result.stdout.fnmatch_lines(["*Disturbed: the context stack of the thread was *"])


def test_audit_of_each_test(driver, library, pytester):
    """What is found is in the report of the test that did it, and of no other."""
    library("monkeypatch")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--cuguest-audit")
    result.assert_outcomes(passed=2, failed=2, skipped=1)
    result.stdout.fnmatch_lines(["*test_leaves*", "cuguest-audit: 1 findings", "*- cuguest-audit -*",
                                 "*leaked push*", "*test_fails*", "*assert 1 == 2*"])
    assert result.stdout.str().count("leaked push") == 1


def test_audit_of_a_crash(driver, pytester):
    pytester.makepyfile("import os\n\ndef test_dies():\n    os.abort()\n\ndef test_lives():\n    pass\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--cuguest-audit")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*the test's process ended with 134*"])


def test_audit_that_is_incomplete(driver, pytester):
    """A process without the auditor's variables, which uses CUDA."""
    pytester.makepyfile("""
        import os, subprocess, sys

        def test_starts_another():
            code = "import ctypes, time; ctypes.CDLL('libcuda.so.1').cuInit(0); time.sleep(1)"
            subprocess.run([sys.executable, "-c", code], env={"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")})
    """)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--cuguest-audit")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["cuguest-audit: the audit is incomplete"])


KINDS = """
    import ctypes, unittest
    import pytest
    driver = ctypes.CDLL("libcuda.so.1")

    def disturb():
        made = ctypes.c_void_p()
        driver.cuInit(0)
        driver.cuCtxCreate_v2(ctypes.byref(made), 0, 0)

    class TestCase(unittest.TestCase):
        @pytest.mark.usefixtures("undisturbed")
        def test_pushes(self):
            disturb()

        @pytest.mark.usefixtures("undisturbed")
        def test_silent(self):
            pass

        @pytest.mark.usefixtures("undisturbed")
        def test_that_fails(self):
            self.fail("mine")

    @pytest.mark.usefixtures("undisturbed")
    class TestClass:
        def test_pushes(self):
            disturb()

    def test_asks_itself(request):
        disturb()
        request.getfixturevalue("undisturbed")
        disturb()

    def test_asked_before(request):
        disturb()
        request.getfixturevalue("undisturbed")

    @pytest.fixture(autouse=True)
    def of_all(request):
        if "auto" in request.node.name:
            request.getfixturevalue("undisturbed")

    def test_auto():
        disturb()
"""


def test_fixture_checks_every_kind_of_test(driver, pytester):
    pytester.makepyfile(textwrap.dedent(KINDS))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-rf")
    result.assert_outcomes(passed=2, failed=5)
    said = result.stdout.str()
    assert said.count("Disturbed: the context stack of the thread was ") >= 4
    for name in ("TestCase::test_pushes", "TestClass::test_pushes", "::test_asks_itself", "::test_auto",
                 "TestCase::test_that_fails"):
        assert re.search(rf"^FAILED \S*{name}\b", said, re.M), name
    assert "AssertionError: mine" in said


POLLUTED = """
    import ctypes, unittest
    import pytest
    import cuguest
    from cuguest.testing import undisturbed as block
    driver = ctypes.CDLL("libcuda.so.1")

    @pytest.fixture(autouse=True)
    def begins_empty():
        assert cuguest.current() is None

    def disturb():
        made = ctypes.c_void_p()
        driver.cuInit(0)
        driver.cuCtxCreate_v2(ctypes.byref(made), 0, 0)

    def test_pushes(undisturbed):
        disturb()

    def test_fails(undisturbed):
        disturb()
        assert False

    class TestCase(unittest.TestCase):
        @pytest.mark.usefixtures("undisturbed")
        def test_pushes(self):
            disturb()

    def test_skips(undisturbed):
        disturb()
        pytest.skip("so")

    def test_block():
        with block():
            disturb()

    def test_error():
        cuguest.acquire(device=99)

    def test_warning():
        import warnings
        warnings.simplefilter("error")
        with cuguest.guard(None):
            disturb()

    def test_last():
        pass
"""


def test_the_next_test_begins_as_this_one_did(driver, pytester):
    """And a failure is shown where the test's code is, not the package's."""
    pytester.makepyfile(textwrap.dedent(POLLUTED))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=6, skipped=1)
    said = result.stdout.str()
    for kind in ("Disturbed", "Error", "CuguestWarning"):
        assert re.search(rf"^test_\S+:\d+: {kind}$", said, re.M), kind
    assert "_python.py" not in said and "testing.py:" not in said and "contextlib.py" not in said


OUTCOMES = """
    import unittest
    import pytest

    @pytest.mark.skip(reason="no GPU")
    def test_skipped(): pass

    def test_skips(): pytest.skip("so")

    @pytest.mark.xfail
    def test_xfails(): assert False

    @pytest.mark.xfail
    def test_xpasses(): pass

    @pytest.fixture
    def broken(): raise KeyError("before")

    def test_error_before(broken): pass

    @pytest.fixture
    def breaks():
        yield
        raise KeyError("behind")

    def test_error_behind(breaks): pass

    @pytest.mark.parametrize("url", ["http://example.com/a", "a/./b", "p/q", "x::y", "[z]"])
    def test_odd_ids(url): pass

    class TestCase(unittest.TestCase):
        def test_passes(self): pass
        def test_fails(self): self.fail("mine")

        @unittest.skip("here, too")
        def test_is_skipped(self): pass
"""
PROPERTY = """
    def test_property(record_property):
        record_property("made", {"a tuple": (1, 2), "an object": pytest})
        print("said")
"""
SOME = """
    import unittest
    import pytest

    def test_passes(): pass

    @pytest.mark.parametrize("url", ["http://example.com/a"])
    def test_fails(url): assert url == 1

    def test_skips(): pytest.skip("so")

    @pytest.mark.xfail
    def test_xfails(): assert False

    @pytest.fixture
    def breaks():
        yield
        raise KeyError("behind")

    def test_error_behind(breaks): pass
"""
SUBTESTS = """
    import unittest
    import pytest

    def test_some(subtests):
        with subtests.test("first"):
            pass
        for name in ("second", "third"):
            with subtests.test(name, a_tuple=(1, 2)):
                assert name == 2

    def test_skips_one(subtests):
        with subtests.test("skips"):
            pytest.skip("so")

    class TestCase(unittest.TestCase):
        def test_some(self):
            for i in range(3):
                with self.subTest(i=i):
                    self.assertNotEqual(i, 1)
"""


def told(result):
    """How many had each outcome, and which; between processes an argument of a subtest becomes its text, or a list."""
    lines = re.findall(r"^.*\b(?:PASSED|SKIPPED|FAILED|ERROR|XFAIL|SUBFAIL|SUBFAILED|SUBSKIP|SUBSKIPPED)\b.*", result.stdout.str(), re.M)
    return result.parseoutcomes(), sorted(re.sub(r"[][()'\"\\]", "", line.partition(" - ")[0]) for line in lines)


@pytest.mark.parametrize("tests, options, ini", [(SUBTESTS, [], ""), (SUBTESTS, ["-n2"], ""), (SOME, [], "addopts = -n2")],
                         ids=["subtests", "subtests-xdist", "xdist-of-the-file"])
def test_audit_changes_no_outcome(driver, pytester, request, tests, options, ini):
    if options or ini:
        pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    if tests == SUBTESTS:
        try:
            request.getfixturevalue("subtests")
        except pytest.FixtureLookupError:
            pytest.skip("pytest-subtests is not installed")
    pytester.makeini(f"[pytest]\n{ini}\n")
    pytester.makepyfile(textwrap.dedent(tests))
    words = ("-p", "no:cacheprovider", "-rA", *options)
    without, audited = (told(pytester.runpytest_subprocess(*words, *more)) for more in ((), ("--cuguest-audit",)))
    assert audited == without and len(without[1]) > 4


def test_audit_of_each_outcome(driver, pytester):
    """As without the audit, in each form of a report."""
    pytester.makepyfile(textwrap.dedent(OUTCOMES + PROPERTY))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--cuguest-audit", "-v", "-rA", "--junit-xml=made.xml")
    result.assert_outcomes(passed=8, failed=1, skipped=3, xfailed=1, xpassed=1, errors=2)
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


@pytest.mark.parametrize("name, locale", [(b"\xff", {}), ("\xe9".encode(), ASCII)],
                         ids=["path that is no UTF-8", "locale of ASCII"])
def test_audit_of_a_test_with_such_a_path(driver, tmp_path, name, locale):
    folder = os.fsencode(tmp_path) + b"/" + name
    os.mkdir(folder)
    with open(folder + b"/test_there.py", "w") as file:
        file.write("def test_there(): pass\n")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--cuguest-audit", "--rootdir=."],
                          cwd=folder, env=dict(os.environ, **locale), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0 and b"1 passed" in done.stdout, done.stdout


def test_audit_of_a_test_outside_of_the_root(driver, pytester, tmp_path):
    other = tmp_path / "other" / "test_other.py"
    other.parent.mkdir()
    other.write_text("def test_there(): pass\n")
    root = pytester.mkdir("root")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--cuguest-audit", f"--rootdir={root}", other)
    result.assert_outcomes(passed=1)
