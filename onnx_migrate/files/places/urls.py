"""URLs that fsspec opens."""

from __future__ import annotations

from pathlib import Path

from onnx_migrate.files.places import LocalCopy, Place
from onnx_migrate.url import is_url

__all__ = ["PLACE"]


class _Urls(Place):
    def holds(self, name: str) -> bool:
        return is_url(name)

    def local_copy(self, name: str) -> LocalCopy:
        from onnx_migrate.files.places.url_download import DownloadedModel

        return DownloadedModel(name)

    def check_target(self, name: str, *, source: str | None, in_place: bool) -> None:
        from onnx_migrate.files.places.url_upload import check_url

        check_url(name, source=source, in_place=in_place)

    def send(self, path: Path, name: str) -> None:
        from onnx_migrate.files.places.url_upload import upload

        upload(path, name)


PLACE = _Urls()
