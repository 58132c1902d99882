"""A headless Chromium, driven over its DevTools pipe by Python's own library alone."""

from __future__ import annotations

import base64
import importlib.resources
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Names that Chromium goes by.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: Seconds that an answer may take, on a busy machine.
PATIENCE = 120


def find_chromium() -> str | None:
    """Path of a Chromium on this machine: CHROMIUM, or the first of NAMES on PATH."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def find_axe() -> str | None:
    """The script of axe-core; None where its package is not installed."""
    try:
        folder = importlib.resources.files("axe_core_python")
    except ModuleNotFoundError:
        return None
    return folder.joinpath("axe.min.js").read_text("utf-8")


class Browser:
    """One page of one browser. Keeps all console messages, exceptions and requests.

    Attributes
    ----------
    problems : list of str
        Errors and warnings on the console, uncaught exceptions, what the browser itself reports.
    requests : list of str
        URLs that the page asked for, itself included.
    downloads : dict
        Suggested file name of each finished download by its identifier.
    """

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.downloads: dict[str, str] = {}
        self._begun: dict[str, str] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="chromium-"))
        self._events: list[str] = []
        self._last, self._rest = 0, b""
        self._start(find_chromium())
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.call(
            "Browser.setDownloadBehavior",
            behavior="allowAndName",
            downloadPath=str(self.folder / "downloads"),
            eventsEnabled=True,
            session=False,
        )
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def _start(self, program: str | None) -> None:
        if program is None:
            raise FileNotFoundError("no Chromium on PATH; install chromium or set CHROMIUM")
        self._session = None
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        arguments = [
            *("--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"),
            *("--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars"),
            # WebGL without a GPU, which Chromium otherwise remarks on.
            "--enable-unsafe-swiftshader",
            *("--disable-extensions", "--mute-audio", f"--user-data-dir={self.folder}/profile"),
        ]
        if os.getuid() == 0:
            arguments.append("--no-sandbox")  # Chromium's sandbox refuses root
        # The browser reads commands from descriptor 3 and answers on 4.
        line = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self.process = subprocess.Popen(
            ["bash", "-c", line, program, *arguments, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = ours_in, ours_out

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_) -> None:
        os.close(self._out)
        os.close(self._in)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def visit(self, address: str, ready: str, harmless: str | None = None) -> Iterator[None]:
        """A page, opened anew. In the end it has fetched nothing and the console is empty.

        `ready`: an expression that is true once the page is; problems with `harmless` in their text
        do not count.
        """
        self.problems.clear()
        self.open("about:blank")
        self.open(address, ready)
        yield
        whole = [url for url in self.requests if not url.startswith(("data:", "blob:", "about:"))]
        assert whole == [address]
        assert [found for found in self.problems if not harmless or harmless not in found] == []

    # --- the protocol --------------------------------------------------------------------------

    def call(self, method: str, *, session: bool = True, **parameters: Any) -> dict:
        """One command of the DevTools protocol and its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if session and self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for answer in self._receive(1.0):
                if answer.get("id") == self._last:
                    if "error" in answer:
                        raise RuntimeError(f"{method}: {answer['error']['message']}")
                    return answer["result"]
        raise TimeoutError(f"{method}: no answer in {PATIENCE} s")

    def _receive(self, seconds: float) -> list[dict]:
        """Messages that have come; events among them are noted."""
        if not select.select([self._in], [], [], seconds)[0]:
            return []
        read = os.read(self._in, 1 << 20)
        if not read:
            raise ConnectionError("Chromium has gone")
        *whole, self._rest = (self._rest + read).split(b"\0")
        messages = [json.loads(text) for text in whole]
        for message in messages:
            self._note(message.get("method", ""), message.get("params", {}))
        return messages

    def _note(self, event: str, about: dict) -> None:
        self._events.append(event)
        if event == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif event == "Runtime.consoleAPICalled" and about["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.problems.append(str([a.get("value") for a in about["args"]]))
        elif event == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.problems.append(about["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Browser.downloadWillBegin":
            self._begun[about["guid"]] = about["suggestedFilename"]
        elif event == "Browser.downloadProgress" and about["state"] == "completed":
            self.downloads[about["guid"]] = self._begun[about["guid"]]

    # --- what a person does --------------------------------------------------------------------

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def open(self, url: str, ready: str = "document.readyState === 'complete'") -> None:
        """Open a page and wait until the expression `ready` holds."""
        self.requests.clear()
        self.call("Page.navigate", url=url)
        self.wait(ready)

    def run(self, expression: str) -> Any:
        """Value of a JavaScript expression, or of the promise it gives."""
        answer = self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = PATIENCE) -> None:
        deadline = time.monotonic() + seconds
        while not self.run(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {expression}; {self.problems}")
            time.sleep(0.02)

    def mouse(self, kind: str, x: float, y: float, **further: Any) -> None:
        """kind: Moved, Pressed, Released or Wheel."""
        pressed = {} if kind in ("Moved", "Wheel") else {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **(pressed | further))

    def click(self, x: float, y: float) -> None:
        self.mouse("Moved", x, y)
        self.mouse("Pressed", x, y)
        self.mouse("Released", x, y)

    def click_on(self, selector: str) -> None:
        """Scroll to an element and click its middle."""
        x, y = self.middle(selector)
        self.click(x, y)

    def middle(self, selector: str) -> tuple[float, float]:
        x, y, width, height = self.bring(f"document.querySelector({json.dumps(selector)})")
        return x + width / 2, y + height / 2

    def bring(self, element: str) -> list[float]:
        """Scroll to an element, an expression, and return its x, y, width and height there."""
        return self.run(
            f"(async () => {{ const e = {element};"
            "for (let k = 0; k < 3; k++) {"  # what comes near is laid out, which moves the rest
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))); }"
            "const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()"
        )

    def drag(self, points: list[tuple[float, float]]) -> None:
        self.mouse("Moved", *points[0])
        self.mouse("Pressed", *points[0])
        for point in points[1:]:
            self.mouse("Moved", *point, button="left", buttons=1)
        self.mouse("Released", *points[-1])

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def key(self, name: str, code: int = 0) -> None:
        text = {"text": name} if len(name) == 1 else {"text": "\r"} if name == "Enter" else {}
        parameters = {"key": name, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **parameters, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **parameters)

    def downloaded(self, name: str, seconds: float = 20) -> str:
        """Content of the newest download of that name."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._receive(0.05)
            for identifier in [i for i, n in self.downloads.items() if n == name][::-1]:
                path = self.folder / "downloads" / identifier
                if path.exists():
                    return path.read_bytes().decode("utf-8", "replace")
        raise TimeoutError(f"{name} was not downloaded; {self.downloads}")

    def violations(self) -> list[str]:
        """What axe-core finds on the page as it is now: rule and first elements."""
        self.run(f"{find_axe()}; 1")
        return self.run(
            "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v =>"
            "`${v.id}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 120)).join(' ')}`))"
        )

    def screenshot(self, path: Path, whole: bool = False) -> None:
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))
