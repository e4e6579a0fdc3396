"""Says where a path of the original program lies on ModelArts. Made by `danlu migrate --modelarts`.

Paths that `path_mapping_config.py` does not map stay as they are, so the program still runs anywhere else. Where an entry
points to object storage (`obs://...`) and MoXing is installed, inputs are copied to the cache at the first use and outputs
are copied back when the program ends.
"""
import atexit
import os

from .path_mapping_config import INPUT, OUTPUT

CACHE = os.environ.get("MODELARTS_CACHE", "/cache/modelarts_cache")


def _copy(source, target):
    import moxing

    moxing.file.copy_parallel(source, target)


class ModelArtsPathManager:
    """One for the whole program."""

    _only = None

    def __new__(cls):
        if cls._only is None:
            cls._only = super().__new__(cls)
            cls._only._ready = {}
        return cls._only

    def get_path(self, path):
        if not isinstance(path, (str, os.PathLike)):
            return path
        text = os.fspath(path)
        for table, is_output in ((INPUT, False), (OUTPUT, True)):
            for local in sorted(table, key=len, reverse=True):
                if text == local or text.startswith(local.rstrip("/") + "/"):
                    return self._folder(local, table[local], is_output) + text[len(local.rstrip("/")):]
        return path

    def _folder(self, local, target, is_output):
        if not target.startswith(("obs://", "s3://")):
            return target.rstrip("/")
        if local not in self._ready:
            cached = os.path.join(CACHE, local.strip("./").replace("/", "_"))
            os.makedirs(cached, exist_ok=True)
            if is_output:
                atexit.register(_copy, cached, target)
            else:
                _copy(target, cached)
            self._ready[local] = cached
        return self._ready[local]
