"""Errors that state the problem and the cure."""


class AirlocError(Exception):
    """An error that the user can fix. The command line prints it and exits with code 2.

    Args:
        problem: What is wrong and where, as one sentence without a full stop.
        cure: What to do about it, as one sentence without a full stop.
    """

    def __init__(self, problem: str, cure: str) -> None:
        super().__init__(problem, cure)
        self.problem = problem
        self.cure = cure

    def __str__(self) -> str:
        return f"{self.problem}. {self.cure}."
