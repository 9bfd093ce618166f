"""What holds for every test."""

import signal

from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a run in the background of a script ignores it, and what the tests start would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A slow machine is no failure: no test has a deadline, and none is refused for drawing slowly.
settings.register_profile("midstream", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("midstream")
