# SPDX-License-Identifier: MIT
"""Drives headless Chromium through its --remote-debugging-pipe with the standard library only:
messages of the DevTools protocol, JSON terminated by NUL, on descriptors 3 and 4."""
import json
import os
import shutil
import subprocess
import sys


KEY_CODES = {"Enter": 13, "Escape": 27}


class Browser:
    def __init__(self, program, profile):
        to_us, from_browser = os.pipe()
        to_browser, from_us = os.pipe()

        def place():
            # First copy to higher numbers: 3 and 4 may be in use by the pipes themselves.
            reading, writing = os.dup2(to_browser, 60), os.dup2(from_browser, 61)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser), os.close(from_browser)
        self.reader, self.writer = os.fdopen(to_us, "rb"), os.fdopen(from_us, "wb")
        self.number, self.session, self.rest, self.said = 0, None, b"", []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.writer.write(json.dumps(message).encode() + b"\0")
        self.writer.flush()
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def read(self):
        """The next message. Messages from the page's console are kept in `said`."""
        while b"\0" not in self.rest:
            piece = os.read(self.reader.fileno(), 1 << 20)
            if not piece:
                raise EOFError("the browser has gone")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(message)
        if message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.said.append(message["params"])
        return message

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.wait_for_load()

    def reload(self):
        self.call("Page.reload")
        self.wait_for_load()

    def wait_for_load(self):
        while self.read().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression):
        """The value of a JavaScript expression after the page has drawn pending changes."""
        answer = self.call("Runtime.evaluate", returnByValue=True, awaitPromise=True,
                           expression=f"new Promise((yes) => requestAnimationFrame(() => setTimeout(() => yes({expression}))))")
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def key(self, key, text="", shift=False):
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            if key in KEY_CODES:  # without it, the browser's own action does not happen
                more["windowsVirtualKeyCode"] = KEY_CODES[key]
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=8 if shift else 0, **more)

    def mouse(self, x, y, click=False, button="left"):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1)

    def drag(self, start, end):
        """Moves the mouse from one place to another one, with the button pressed."""
        (x, y), (to_x, to_y) = start, end
        for kind, at_x, at_y in (("mouseMoved", x, y), ("mousePressed", x, y), ("mouseMoved", (x + to_x) / 2, (y + to_y) / 2),
                                 ("mouseMoved", to_x, to_y), ("mouseReleased", to_x, to_y)):
            pressed = {"button": "left", "buttons": 1} if kind != "mouseMoved" or at_x != x else {}
            self.call("Input.dispatchMouseEvent", type=kind, x=at_x, y=at_y, clickCount=1, **pressed)

    def download_to(self, folder):
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def size(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (EOFError, BrokenPipeError):
            pass
        self.process.wait(30)


def browser_or_skip(scratch):
    """A browser whose files are in the directory `scratch`; ends the test with status 77 if there is none."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        print("skipped: there is no Chromium")
        sys.exit(77)
    try:
        return Browser(program, f"{scratch}/browser")
    except (EOFError, BrokenPipeError):
        print(f"skipped: {program} does not run here")
        sys.exit(77)
