"""Threads that make calls, processes that are forked meanwhile, and native code that never ends: nobody may wait for another.

`python -m tests.campaigns.hosts.stalls ROUNDS [SEED]` prints each stall, and the longest healthy call.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import onnx
import onnx.parser

import onnx_migrate
from onnx_migrate import Cancelled, Session
from onnx_migrate.process import call_in_fork
from onnx_migrate.process.cancellation import stoppable

__all__ = ["Rounds"]

_TEXT = '<ir_version: 7, opset_import: ["": 11]> g (float[2,3] x) => (float[2,3] y) { y = Softmax (x) }'

_HANGING = 30.0
"""Seconds that hanging native code would run if nobody stopped it."""


@dataclass
class Rounds:
    """Rounds of three threads and two forks each; `stalls` has a line for each call that waited for another.

    A call that takes longer than `patience` seconds stalls: it takes a tenth of one, or one with new child processes.
    """

    seed: int = 0
    patience: float = 20.0
    stalls: list[str] = field(default_factory=list)
    longest: float = 0.0

    def __post_init__(self) -> None:
        self._model = onnx.parser.parse_model(_TEXT)
        self._random = random.Random(self.seed)
        self._session = Session(jobs=2)
        self._tasks = (self._convert, self._migrate, self._migrate_in_session, self._hang, self._cancel)

    def run(self, rounds: int) -> None:
        """Run so many rounds."""
        try:
            for number in range(rounds):
                self._round(number)
        finally:
            self._session.close()

    def _round(self, number: int) -> None:
        tasks: list[Callable[[], None]] = [self._convert, *self._random.choices(self._tasks, k=2)]
        threads = [threading.Thread(target=self._timed, args=(task, number)) for task in tasks]
        for thread in threads:
            thread.start()
        for _ in range(2):
            time.sleep(self._random.uniform(0, 0.1))
            self._fork(self._random.choice([self._convert, self._migrate, self._migrate_in_session]), number)
        for thread in threads:
            thread.join(_HANGING)
            if thread.is_alive():
                self.stalls.append(f"round {number}: a thread does not end")

    def _timed(self, task: Callable[[], None], number: int) -> None:
        start = time.monotonic()
        task()
        seconds = time.monotonic() - start
        self.longest = max(self.longest, seconds)
        if seconds > self.patience:
            self.stalls.append(f"round {number}: {task.__name__} took {seconds:.0f} s")

    def _fork(self, task: Callable[[], None], number: int) -> None:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(int(self.patience))
            # A fork that hangs prints where, before the alarm ends it.
            faulthandler.dump_traceback_later(max(0.1, self.patience - 2))
            try:
                task()
                os._exit(0)
            finally:
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        if status:
            how = "hung" if os.WIFSIGNALED(status) else "failed"
            self.stalls.append(f"round {number}: a fork {how} in {task.__name__}")

    def _convert(self) -> None:
        onnx_migrate.convert_version(self._model, 17)

    def _migrate(self) -> None:
        assert onnx_migrate.migrate(self._model, opset=17, simplify=False).report.verified

    def _migrate_in_session(self) -> None:
        assert self._session.migrate(self._model, opset=17, simplify=False).report.verified

    def _hang(self) -> None:
        """Let native code compute that a limit ends, as it does a hostile model."""
        call_in_fork("time:sleep", _HANGING, seconds=1.0, memory=1 << 28)

    def _cancel(self) -> None:
        """Let native code compute that a token ends."""
        token = threading.Event()
        threading.Timer(0.2, token.set).start()
        try:
            with stoppable(token):
                call_in_fork("time:sleep", _HANGING, seconds=_HANGING, memory=1 << 28)
        except Cancelled:
            return
        raise AssertionError("the token did not end the call")


def main(arguments: list[str]) -> int:
    """Run the rounds and print what stalled."""
    rounds = Rounds(int(arguments[1]) if len(arguments) > 1 else 0)
    rounds.run(int(arguments[0]))
    for line in rounds.stalls:
        print(line)
    print(f"{arguments[0]} rounds, {len(rounds.stalls)} stalls, the longest call took {rounds.longest:.1f} s")
    return min(len(rounds.stalls), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
