"""What every test may ask for: a running gateway, a table name, a state."""

import itertools
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from blackbox.gateway import Gateway
from blackbox.states import STATES, State

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """One gateway for all tests that do no harm to it. It may be restarted."""
    gateway = Gateway(tmp_path_factory.mktemp("gateway"))
    gateway.start()
    yield gateway
    gateway.stop()
    gateway.expect_clean_log()


@pytest.fixture
def gateway(shared):
    """The shared gateway, alive before and after the test."""
    if not shared.alive():
        shared.start()
    yield shared
    assert shared.alive(), f"the gateway died:\n{shared.log_tail()}"


@pytest.fixture
def client(gateway):
    return gateway.client


@pytest.fixture
def own_gateway(tmp_path):
    """Starts gateways of the test's own: own_gateway("--max-message", "64MiB")."""
    started = []

    def start(*flags):
        gateway = Gateway(tmp_path / f"gateway-{len(started)}", *flags)
        gateway.start()
        started.append(gateway)
        return gateway

    yield start
    for gateway in started:
        gateway.stop()


@pytest.fixture
def name(request):
    """A table name that no other test has."""
    words = re.sub(r"\W+", "_", request.node.name)[:60]
    return f"{words}_{next(_numbers)}"


@pytest.fixture(params=STATES)
def state(request, gateway):
    """The states in which stored rows must look the same: see blackbox/states.py."""
    return State(request.param, gateway)
