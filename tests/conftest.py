"""What holds for every test."""

from hypothesis import HealthCheck, settings

# A slow machine is no failure: no test has a deadline, and none is refused for drawing slowly.
settings.register_profile("midstream", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("midstream")
