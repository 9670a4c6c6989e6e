"""Where the filesystem store's signed URLs lead. The signature is the permission; there is no key."""

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse

from canard.errors import ArtifactNotFoundError
from canard_platform.artifacts.filesystem import CHUNK_BYTES, FilesystemStore


def blob_router(store: FilesystemStore) -> APIRouter:
    """The routes exist only where this store is in use."""
    router = APIRouter(prefix="/v1/blobs", include_in_schema=False)

    @router.api_route("/{token}", methods=["GET", "HEAD"])
    def download(token: str) -> FileResponse:
        grant = store.read_grant(token, method="GET")
        path = store.path(grant.key)
        if not path.is_file():
            raise ArtifactNotFoundError(f"no artifact under {grant.key}")
        return FileResponse(
            path,
            filename=grant.filename,
            media_type="application/octet-stream",
            stat_result=path.stat(),
            headers={
                "Cache-Control": "private, no-store",
                "X-Content-Type-Options": "nosniff",
                "Content-Security-Policy": "sandbox; default-src 'none'",
            },
        )

    @router.put("/{token}")
    async def upload(token: str, request: Request) -> Response:
        grant = store.read_grant(token, method="PUT")
        incoming = await run_in_threadpool(store.receive, grant)
        try:
            waiting = bytearray()
            async for chunk in request.stream():
                waiting += chunk
                if len(waiting) >= CHUNK_BYTES:
                    await run_in_threadpool(incoming.write, bytes(waiting))
                    waiting.clear()
            await run_in_threadpool(incoming.write, bytes(waiting))
            await run_in_threadpool(incoming.finish)
        finally:
            await run_in_threadpool(incoming.close)
        return Response(status_code=201)

    return router
