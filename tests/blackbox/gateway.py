"""A gateway process: started on a free port, stopped, killed, restarted."""

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import psutil

from .wire import Client

PROJECT = Path(__file__).parents[2]
START_SECONDS = 60


class Gateway:
    """`sheaf serve` on a directory of its own, reached through `client`."""

    def __init__(self, directory, *flags):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.data = self.directory / "data"
        self.log_path = self.directory / "gateway.log"
        self.flags = flags
        self.process = None
        self.address = None

    @property
    def binary(self):
        return os.environ.get("SHEAF_BIN", str(PROJECT / "build" / "sheaf"))

    def start(self, timeout=START_SECONDS):
        """Start and wait until calls are answered; returns the seconds that took."""
        began = time.monotonic()
        log = self.log_path.open("ab")
        self.process = subprocess.Popen(
            [self.binary, "serve", "--data", self.data, "--listen", "127.0.0.1:0",
             "--log-format", "json", *self.flags],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        listening = threading.Event()
        reader = threading.Thread(
            target=self._read_log, args=(self.process.stderr, log, listening), daemon=True)
        reader.start()
        self._reader = reader
        deadline = began + timeout
        while not listening.wait(0.05):
            if self.process.poll() is not None:
                raise RuntimeError(f"the gateway did not start:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the gateway did not listen:\n{self.log_tail()}")
        self.client = Client(self.address)
        self.client.wait()
        return time.monotonic() - began

    def _read_log(self, stream, log, listening):
        """Keep the log on disk; the line that says where it listens starts the tests."""
        with log:
            for line in stream:
                log.write(line)
                log.flush()
                if not listening.is_set() and b'"listening"' in line:
                    self.address = json.loads(line)["address"]
                    listening.set()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def ask_to_stop(self):
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        """End it as an operator does; a hanging or failing stop is an error."""
        if self.process is None:
            return
        if self.alive():
            self.client.close()
            self.ask_to_stop()
        code = self.process.wait(60)
        self._reader.join()
        assert code in (0, -signal.SIGKILL), f"the gateway stopped with {code}:\n{self.log_tail()}"

    def kill(self):
        """End it as a power cut does, as far as the process goes."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        if hasattr(self, "client"):
            self.client.close()

    def restart(self):
        self.stop()
        return self.start()

    def memory(self):
        """Resident bytes of the process."""
        return psutil.Process(self.process.pid).memory_info().rss

    def peak_memory(self):
        """The most resident bytes that the process ever had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def cpu_seconds(self):
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def log_lines(self):
        for line in self.log_path.read_text(errors="replace").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                yield {"level": "raw", "msg": line}

    def log_tail(self, lines=40):
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def expect_clean_log(self):
        """No panic was recovered and nothing but log lines was written."""
        for line in self.log_lines():
            text = json.dumps(line)
            assert "panic" not in text, text
            assert "goroutine " not in text, text
