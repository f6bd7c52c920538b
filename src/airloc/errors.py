"""Errors for people: what is wrong, where, and what to do about it."""


class AirlocError(Exception):
    """Something a person can mend; the command line prints it and exits with code 2.

    Args:
        problem: What is wrong and where, one sentence without a full stop.
        cure: What to do about it, one sentence without a full stop.
    """

    def __init__(self, problem: str, cure: str) -> None:
        super().__init__(problem, cure)
        self.problem = problem
        self.cure = cure

    def __str__(self) -> str:
        return f"{self.problem}. {self.cure}."
