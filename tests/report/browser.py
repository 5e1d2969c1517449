"""A headless Chromium, driven through its own pipe: the DevTools protocol without any package.

Chromium reads commands from file descriptor 3 and writes replies and events to 4, JSON texts that
end with a NUL byte.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-default-apps", "--disable-extensions", "--mute-audio", "--hide-scrollbars"),
    *("--disable-dev-shm-usage", "--no-default-browser-check", "--remote-debugging-pipe"),
]
CODES = {"Tab": 9}  # keys that the browser itself acts on
PATIENCE = 60.0  # seconds for one reply; a busy machine is slow
DRAWN = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))"


class Browser:
    """One tab. `events` has everything that it reported by itself, in order."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        to_child, self._out = os.pipe()
        self._in, from_child = os.pipe()
        # The child must find the pipes at 3 and 4, wherever they are here: a shell moves them.
        script = f'exec "$@" 3<&{to_child} 4>&{from_child}'
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, "bash", *command],
            pass_fds=(to_child, from_child),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        self._rest = b""
        self._last = 0
        self._session: str | None = None
        self.events: list[tuple[str, dict[str, Any]]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session = None
        with suppress(OSError, RuntimeError, TimeoutError):
            self.call("Browser.close")
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Give a command and wait for its reply."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            reply = self._read(time.monotonic() + PATIENCE)
            if reply.get("id") == self._last:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]

    def wait_for(self, event: str) -> None:
        """Wait until an event has come."""
        end = time.monotonic() + PATIENCE
        while not any(name == event for name, _ in self.events):
            self._read(end)

    def _read(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], max(end - time.monotonic(), 0))[0]:
                raise TimeoutError("the browser does not reply")
            chunk = os.read(self._in, 1 << 16)
            if not chunk:
                raise RuntimeError("the browser has gone")
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append((message["method"], message["params"]))
        return message

    # -- what tests need ---------------------------------------------------------------------------

    def open(self, path: Path, *, width: int = 1100, height: int = 900, dark: bool = False) -> None:
        """Open a file in a window of this size."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired")
        self.run(DRAWN)  # two frames later everything that the script requested is drawn

    def run(self, expression: str) -> Any:
        """Return the value of an expression on the page."""
        reply = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in reply:
            raise RuntimeError(reply["exceptionDetails"])
        return reply["result"].get("value")

    def point_in(self, selector: str) -> tuple[float, float]:
        """Bring an element into view and return a point in it."""
        element = f"document.querySelector({selector!r})"
        self.run(f"{element}.scrollIntoView({{behavior: 'instant'}})")
        self.run(DRAWN)  # what the mouse hits is where the last frame was drawn
        x, y = self.run(
            f"(r => [r.x + r.width / 2, r.y + r.height / 2])({element}.getBoundingClientRect())"
        )
        return x, y

    def run_until_not(self, expression: str, value: Any) -> Any:
        """Return the value of an expression as soon as it is another one."""
        end = time.monotonic() + PATIENCE
        while (now := self.run(expression)) == value:
            if time.monotonic() > end:
                raise TimeoutError(f"{expression} stays as it is")
            self.run(DRAWN)
        return now

    def press(self, key: str) -> None:
        """Press and release a key."""
        more = {"text": key} if len(key) == 1 else {"windowsVirtualKeyCode": CODES.get(key, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def drag(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """Drag with the left button."""
        at = {"button": "left", "buttons": 1, "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, **at)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=to_x, y=to_y, **at)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=to_x, y=to_y, **at)

    def complaints(self) -> list[str]:
        """Return whatever the console has, and every error of a script."""
        found = []
        for name, params in self.events:
            if name in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                found.append(json.dumps(params)[:500])
        return found

    def requests(self) -> list[str]:
        """Return the addresses that the page requested; data URIs are no requests."""
        requested = [
            params["request"]["url"]
            for name, params in self.events
            if name == "Network.requestWillBeSent"
        ]
        return [url for url in requested if not url.startswith("data:")]

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path: Path) -> None:
        """Write the page as it is printed."""
        printed = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(printed["data"]))
