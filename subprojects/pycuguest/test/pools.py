# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pools.py: pools of processes, forked and spawned, in a guard. Run under the auditor. What the processes do with a number is
frameworks.py's, too: one that was forked uses no CUDA, as its parent has some; one that was spawned has its own."""

import concurrent.futures
import multiprocessing
import time

import cuguest


def idles(number):
    time.sleep(0.2)
    return number


def works(number):
    with cuguest.shared(device=0) as mine, cuguest.guard(mine):
        return number if cuguest.current() == mine.context else None


WORK = {"fork": idles, "spawn": works}


def main():
    primary = cuguest.retain_primary(0)
    for method, work in WORK.items():
        context = multiprocessing.get_context(method)
        with cuguest.guard(primary):
            with context.Pool(2) as pool:
                assert pool.map(work, range(3)) == [0, 1, 2]
            with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
                assert list(pool.map(work, range(3))) == [0, 1, 2]
    primary.release()


if __name__ == "__main__":
    main()
