# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every host is put through. A host's cases are these, and what it has on top."""

import gc
import pathlib
import threading
import unittest

import driver
import rude
from guest import FAILED_PRECONDITION, INVALID_ARGUMENT, NOT_FOUND, UNAVAILABLE, GemmGuest, Guest, GuestError
from handover import Memory, memory_of_dlpack
from watch import Disturbed, Watch, loaded_runtimes

COUNT = 1000
ROUNDS = 20
THREADS = 8

ROWS = 64
PRODUCT = [6.0 * ROWS] * ROWS**2  # of matrices of 2 and of 3
WORKSPACE = 1 << 20  # floats


def in_threads(bodies):
    """Runs each in a new thread; the first one's exception that raised any is raised here."""
    raised = []

    def run(body):
        try:
            body()
        except BaseException as error:  # whatever it is, it belongs to the test
            raised.append(error)

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


class Cases(unittest.TestCase):
    directory = ""  # of the guest library; set by hosts_test.py

    @staticmethod
    def open_host():
        """A Host; raises Missing."""
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        cls.host = cls.open_host()
        cls.addClassCleanup(cls.host.close)
        # The numbers of a process without a guest.
        cls.expected = cls.host.work(cls.host.stream())
        cls.watch = Watch()
        print(f"{cls.host.name}: {cls.host.versions()}")
        print("runtime:", ", ".join(loaded_runtimes()) or "none that is a library of its own")
        cls.guest = Guest(cls.directory, cls.watch)

    @classmethod
    def tearDownClass(cls):
        gc.collect()
        cls.guest.close()
        print(f"{cls.watch.times} calls, each looked at before and after")
        if cls.guest.live():
            raise AssertionError(f"the guest still owns {cls.guest.live()} of its things")
        # Left to the end of the process, as many guests leave it.
        cls.guest.work_in_own_context(COUNT)

    def expect_own_work(self, stream):
        self.assertEqual(self.host.work(stream), self.expected)

    def work_between(self, stream):
        """The guest's calls on the host's stream and memory, and the host's own work between them."""
        handle = self.host.handle(stream)
        x, y = self.arrays()
        self.guest.fill(handle, y, 1)
        self.expect_own_work(stream)
        self.guest.scale_add(handle, 2, x, y)
        self.assertEqual(self.guest.sum(handle, y), 7 * COUNT)
        self.expect_own_work(stream)
        self.guest.scale_add(handle, 2, x, y)
        # Waits for the stream. A host that waits for all does so in the context that is current, which may be another one.
        self.assertEqual(self.guest.sum(handle, y), 13 * COUNT)
        self.assertEqual(self.host.values(y), [13.0] * COUNT)
        self.assertEqual(self.host.values(x), [3.0] * COUNT)

    def guest_works(self, stream, arrays):
        """All that the guest can do, and nothing of the host's between."""
        handle = self.host.handle(stream)
        x, y = arrays
        self.guest.fill(handle, y, 1)
        self.guest.scale_add(handle, 2, x, y)
        self.assertEqual(self.guest.sum(handle, y), 7 * COUNT)
        self.assertEqual(self.guest.work_in_own_context(COUNT), 7 * COUNT)
        self.assertEqual(self.guest.work_in_primary_context(COUNT), 7 * COUNT)

    def arrays(self):
        return self.host.array(COUNT, 3), self.host.array(COUNT, 0)

    # ---- between the host's own work

    def test_between_the_hosts_own_work(self):
        stream = self.host.stream()
        for _ in range(ROUNDS):
            self.work_between(stream)

    def test_on_several_streams_in_turn(self):
        streams = [self.host.stream() for _ in range(4)]
        for _ in range(ROUNDS // 4):
            for stream in streams:
                self.work_between(stream)

    def test_on_the_default_stream(self):
        x, y = self.arrays()
        self.guest.fill(0, y, 1)
        self.guest.scale_add(0, 2, x, y)
        self.assertEqual(self.guest.sum(0, y), 7 * COUNT)
        self.assertEqual(self.host.values(y), [7.0] * COUNT)

    def test_contexts_of_its_own_between_the_hosts_work(self):
        stream = self.host.stream()
        for _ in range(ROUNDS):
            self.assertEqual(self.guest.work_in_own_context(COUNT), 7 * COUNT)
            self.expect_own_work(stream)
            self.assertEqual(self.guest.work_in_primary_context(COUNT), 7 * COUNT)
            self.expect_own_work(stream)

    def test_on_every_device(self):
        stream = self.host.stream()
        for device in range(driver.device_count()):
            self.assertEqual(self.guest.work_in_own_context(COUNT, device), 7 * COUNT)
            self.assertEqual(self.guest.work_in_primary_context(COUNT, device), 7 * COUNT)
            self.expect_own_work(stream)

    # ---- threads

    def test_threads_at_once(self):
        def body():
            stream = self.host.stream()
            for _ in range(ROUNDS // 4):
                self.work_between(stream)
                self.assertEqual(self.guest.work_in_own_context(COUNT), 7 * COUNT)
                self.assertEqual(self.guest.work_in_primary_context(COUNT), 7 * COUNT)

        # Else it would come and go with the threads, and each would see it of the others.
        with driver.primary_held(0):
            in_threads([body] * THREADS)

    def test_a_thread_that_never_used_cuda(self):
        stream = self.host.stream()
        arrays = self.arrays()

        def body():
            self.assertEqual(driver.stack(), [])
            self.guest_works(stream, arrays)
            self.assertEqual(driver.stack(), [])
            self.expect_own_work(self.host.stream())

        in_threads([body])

    # ---- whatever is current

    def test_with_nothing_current(self):
        stream = self.host.stream()
        arrays = self.arrays()
        with driver.stack_of([]):
            self.guest_works(stream, arrays)

    def test_under_a_users_context(self):
        stream = self.host.stream()
        arrays = self.arrays()
        with driver.own_context() as below, driver.own_context() as top:
            with driver.stack_of([below, top]):
                self.guest_works(stream, arrays)
                self.assertEqual(driver.stack(), [below, top])
                if self.host.works_in_any_context:
                    self.expect_own_work(stream)
                    self.guest_works(stream, arrays)
        self.expect_own_work(stream)

    # ---- in a capture

    def test_inside_a_capture(self):
        stream = self.host.stream()
        handle = self.host.handle(stream)
        x, y = self.arrays()
        self.guest.prepare(handle, y)
        self.host.refill(y, 0, stream)  # what it loads at the first time

        def body(captured):
            self.assertEqual(driver.capture_status(self.host.handle(captured)), driver.CAPTURING)
            self.host.refill(y, 5, captured)
            self.guest.scale_add(self.host.handle(captured), 2, x, y)
            self.refused(FAILED_PRECONDITION, "", self.guest.sum, self.host.handle(captured), y)
            # On other streams, while this one captures.
            self.assertEqual(self.guest.work_in_own_context(COUNT), 7 * COUNT)
            self.assertEqual(self.guest.work_in_primary_context(COUNT), 7 * COUNT)

        graph = self.host.capture(stream, body)
        graph.replay()
        self.assertEqual(self.host.values(y), [11.0] * COUNT)
        self.host.refill(x, 4, stream)
        graph.replay()
        self.assertEqual(self.host.values(y), [13.0] * COUNT)
        graph.close()
        self.expect_own_work(stream)

    # ---- cuBLAS

    def gemm_guest(self, stream, array):
        """Made ready for all threads in the context of the stream."""
        if not (pathlib.Path(self.directory) / GemmGuest.file).exists():
            self.skipTest("the guest was built without cuBLAS")
        if driver.is_simulated() and not driver.simulates("libcublas.so.13"):
            self.skipTest("cuBLAS is not simulated here")
        guest = GemmGuest(self.directory, self.watch)
        try:
            guest.prepare(stream, array, THREADS)
        except GuestError as error:
            if error.code != UNAVAILABLE:
                raise
            self.skipTest(f"no cuBLAS: {error}")
        self.addCleanup(guest.close)
        return guest

    def matrices(self):
        return [self.host.array(ROWS**2, value) for value in (2, 3, 0)]

    def test_cublas_between_the_hosts_own_work(self):
        stream = self.host.stream()
        handle = self.host.handle(stream)
        guest = self.gemm_guest(handle, self.matrices()[0])

        def body():
            stream = self.host.stream()
            matrices, workspace = self.matrices(), self.host.array(WORKSPACE, 0)
            for _ in range(ROUNDS // 4):
                guest.multiply(self.host.handle(stream), *matrices, ROWS, workspace)
                self.expect_own_work(stream)
            self.assertEqual(self.host.values(matrices[2]), PRODUCT)

        body()
        in_threads([body] * THREADS)

    def test_cublas_whatever_is_current(self):
        stream = self.host.stream()  # it lives as long as this
        handle = self.host.handle(stream)
        matrices, workspace = self.matrices(), self.host.array(WORKSPACE, 0)
        guest = self.gemm_guest(handle, matrices[0])
        with driver.own_context() as top:
            for contexts in ([], [top], [top, top]):
                with driver.stack_of(contexts):
                    guest.multiply(handle, *matrices, ROWS, workspace)
        self.assertEqual(self.host.values(matrices[2]), PRODUCT)

    def test_bad_input_of_cublas_is_refused(self):
        stream = self.host.stream()
        handle = self.host.handle(stream)
        a, b, c = self.matrices()
        workspace = self.host.array(WORKSPACE, 0)
        guest = self.gemm_guest(handle, a)
        for bad in (Memory(0, ROWS**2), Memory(64, ROWS**2)):
            self.refused(INVALID_ARGUMENT, "", guest.multiply, handle, bad, b, c, ROWS, workspace)
            self.refused(INVALID_ARGUMENT, "", guest.multiply, handle, a, b, bad, ROWS, workspace)
        self.refused(INVALID_ARGUMENT, "", guest.multiply, handle, a, b, c, 1 << 20, workspace)
        self.refused(INVALID_ARGUMENT, "", guest.multiply, handle, a, b, c, 1 << 40, workspace)
        self.refused(INVALID_ARGUMENT, "", guest.multiply, handle, a, b, c, ROWS, Memory(64, WORKSPACE))
        self.expect_own_work(stream)

    def test_cublas_inside_a_capture(self):
        stream = self.host.stream()
        matrices, workspace = self.matrices(), self.host.array(WORKSPACE, 0)
        guest = self.gemm_guest(self.host.handle(stream), matrices[0])
        graph = self.host.capture(stream, lambda captured: guest.multiply(
            self.host.handle(captured), *matrices, ROWS, workspace))
        graph.replay()
        self.assertEqual(self.host.values(matrices[2]), PRODUCT)
        graph.close()
        self.expect_own_work(stream)

    # ---- handing over

    def test_memory_by_dlpack(self):
        x, y = self.arrays()
        if not hasattr(y, "__dlpack__"):
            self.skipTest("its arrays have no __dlpack__")
        stream = self.host.stream()
        handle = self.host.handle(stream)
        self.guest.fill(handle, memory_of_dlpack(y, stream=handle), 1)
        self.guest.scale_add(handle, 2, memory_of_dlpack(x, stream=handle), memory_of_dlpack(y, stream=handle))
        self.assertEqual(self.guest.sum(handle, y), 7 * COUNT)

    # ---- bad input

    def refused(self, code, text, call, *arguments):
        with self.assertRaises(GuestError) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.code, code, caught.exception)
        self.assertIn(text, str(caught.exception))

    def test_bad_input_is_refused(self):
        stream = self.host.stream()
        handle = self.host.handle(stream)
        x, y = self.arrays()
        beyond = Memory(y.__cuda_array_interface__["data"][0], 1 << 40)
        odd = Memory(y.__cuda_array_interface__["data"][0] + 1, COUNT - 1)
        for bad in (Memory(0, COUNT), Memory(64, COUNT), beyond, odd):
            self.refused(INVALID_ARGUMENT, "", self.guest.fill, handle, bad, 1)
            self.refused(INVALID_ARGUMENT, "", self.guest.scale_add, handle, 2, bad, y)
            self.refused(INVALID_ARGUMENT, "", self.guest.sum, handle, bad)
        self.refused(NOT_FOUND, "device 99", self.guest.work_in_own_context, COUNT, 99)
        self.refused(NOT_FOUND, "device 99", self.guest.work_in_primary_context, COUNT, 99)
        self.work_between(stream)

    # ---- that these checks can fail

    def notices(self, what, stream, act):
        with self.assertRaises(Disturbed) as caught:
            with self.watch.undisturbed(stream):
                act()
        self.assertLessEqual(what, caught.exception.what)

    def test_rude_guests_are_noticed(self):
        runtime = next(iter(loaded_runtimes().values()), None)
        with driver.own_context() as below, driver.own_context() as top, driver.own_context() as theirs:
            for deed in rude.DEEDS:
                if getattr(deed, "needs_runtime", False) and runtime is None:
                    print(f"skipped: rude guest, {deed.__name__}: the host has no runtime that can be called")
                    continue
                with self.subTest(deed.__name__), driver.stack_of([below, top]):
                    steps = deed(theirs, runtime)
                    self.notices(deed.noticed, 0, lambda: next(steps))
                    next(steps, None)
                    with self.watch.undisturbed():
                        pass

    def test_a_lost_capture_is_noticed(self):
        with driver.own_context() as context, driver.stack_of([context]), driver.own_stream() as stream:
            with driver.capture(stream):
                self.notices({"capture"}, stream, lambda: self.assertRaises(
                    driver.DriverError, driver.call, "cuCtxSynchronize"))

    def test_wrong_results_are_noticed(self):
        careful = self.guest

        class Clumsy:
            """A guest that calculates everything twice."""
            fill, sum = careful.fill, careful.sum

            @staticmethod
            def scale_add(*arguments):
                careful.scale_add(*arguments)
                careful.scale_add(*arguments)

        self.guest = Clumsy  # of this test
        with self.assertRaises(AssertionError):
            self.work_between(self.host.stream())
