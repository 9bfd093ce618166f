"""How a simulation can fail apart from the assertions of its scenario."""


class SimulationFailure(AssertionError):
    """A simulation did not end as it must. The text says when (seed, time) and where each task waits."""


class Deadlock(SimulationFailure):
    """Nothing is ready, no timer is set, and the scenario has not ended."""


class LimitPassed(SimulationFailure):
    """The scenario used more virtual time or more steps than it was given."""


class TasksLeft(SimulationFailure):
    """The scenario ended, and tasks that it started have not."""


class ErrorUnhandled(SimulationFailure):
    """An exception reached the loop's handler, or a task failed and nobody asked why."""


class LawBroken(SimulationFailure):
    """What happened contradicts what the protocol promises. The text says each contradiction."""
