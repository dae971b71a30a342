"""A headless Chromium, driven over its DevTools pipe: one process for all pages of a test module."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["CHROMIUM", "Browser", "Tab", "browser"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip

_LAUNCH = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
"""Chromium reads commands from descriptor 3 and answers on 4."""


class Browser:
    """Sends commands to a Chromium and keeps what it says."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._numbers = itertools.count(1)
        self._buffer = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Return the result of a command. Raises RuntimeError where Chromium complains or has ended."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._commands, data) :]
        while (answer := self._next()).get("id") != number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def wait(self, method: str, session: str) -> None:
        """Return once an event has come."""
        while not any(
            item.get("method") == method and item.get("sessionId") == session for item in self.events
        ):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            piece = os.read(self._answers, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium has ended")
            self._buffer += piece
        head, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(head)
        return found

    def open(
        self, page: Path, fragment: str = "", *, width: int = 1440, dark: bool = False, height: int = 900
    ) -> Tab:
        """Return a new tab with a page that has loaded, on a screen of a width; below 500 it is a phone's."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session, target)
        phone = width < 500
        tab.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )  # fmt: skip
        if phone:
            tab.call("Emulation.setTouchEmulationEnabled", enabled=True)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[theme])
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.call("Page.navigate", url=page.as_uri() + fragment)
        self.wait("Page.loadEventFired", session)
        return tab


class Tab:
    """A page in a browser."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result of a command to this page."""
        return self._browser.call(method, self._session, **params)

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression. Raises RuntimeError where it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def until(self, expression: str, expected: Any) -> None:
        """Wait until an expression has a value. Raises AssertionError where it has not within five seconds."""
        end = time.monotonic() + 5
        while (value := self.run(expression)) != expected:
            assert time.monotonic() < end, f"{expression} is {value!r}, and not {expected!r}"
            time.sleep(0.01)

    def key(self, key: str, text: str = "") -> None:
        """Press a key, as a keyboard does."""
        codes = {"Enter": 13, "Tab": 9, " ": 32, "ArrowDown": 40}
        common = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0]))}
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", text=text or ("\r" if key == "Enter" else ""), **common
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Write a screenshot."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Return what the console said, what was thrown, and every address asked for but the page's own."""
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            method, params = event["method"], event["params"]
            if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                found.append(json.dumps(params))
            elif method == "Network.requestWillBeSent" and params["type"] != "Document":
                found.append(params["request"]["url"][:200])
        return found

    def close(self) -> None:
        """Close the page."""
        self._browser.call("Target.closeTarget", targetId=self._target)


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a Chromium with a profile in a new folder; it ends with the block."""
    ours_out, theirs_in = _pipe()
    theirs_out, ours_in = _pipe()
    command = [sys.executable, "-c", _LAUNCH, str(ours_out), str(ours_in), str(CHROMIUM), *_FLAGS]
    process = subprocess.Popen(
        [*command, f"--user-data-dir={profile}"], pass_fds=(ours_out, ours_in), stderr=subprocess.DEVNULL
    )
    os.close(ours_out)
    os.close(ours_in)
    try:
        yield Browser(theirs_in, theirs_out)
    finally:
        process.terminate()
        process.wait()
        os.close(theirs_in)
        os.close(theirs_out)


def _pipe() -> tuple[int, int]:
    """Return the reading and the writing end of a pipe, at numbers that are out of the way of 3 and 4."""
    import fcntl

    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]
