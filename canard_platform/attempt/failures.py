"""An attempt that cannot go on, for a reason that fits a line."""


class AttemptFailure(Exception):  # noqa: N818 - the word for how an attempt ends
    """The attempt ends as failed.

    Args:
        message: one line for people.
        retryable: False when another attempt cannot help.
        detail: what a program said, shown below the line.
    """

    def __init__(self, message: str, *, retryable: bool, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.detail = detail
