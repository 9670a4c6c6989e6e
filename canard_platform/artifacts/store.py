"""The port of artifact stores. Workers and clients see its URLs only, never its credentials."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, Protocol


@dataclass(frozen=True, kw_only=True)
class SignedUrl:
    """A URL for one key and one method, until `expires_at`."""

    url: str
    expires_at: datetime
    headers: dict[str, str] = field(default_factory=dict)
    """To be sent with the request."""


class ArtifactStore(Protocol):
    """Keeps bytes under keys that `keys.checked` has passed.

    An upload is not visible under its key before `commit`; until then what the key had before stays.
    """

    def upload_url(self, key: str, *, size_bytes: int, sha256: str) -> SignedUrl:
        """Where to PUT exactly these bytes."""
        ...

    def commit(self, key: str, *, size_bytes: int, sha256: str) -> None:
        """Make the uploaded bytes the content of the key; repeating it changes nothing.

        Raises:
            InvalidRequestError: they were not received, or are other bytes than announced.
        """
        ...

    def download_url(self, key: str, *, filename: str) -> SignedUrl:
        """Where to GET (and HEAD, with Range) the content."""
        ...

    def open(self, key: str) -> BinaryIO:
        """The content, from the start and seekable.

        Raises:
            ArtifactNotFoundError: there is none.
        """
        ...
