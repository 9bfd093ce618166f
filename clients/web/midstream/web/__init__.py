"""The chat page as files, for a server to serve.

The page is built by Vite from `clients/web/src` into the folder `page` of this package. A wheel brings it
along; a clone has it once `make page` (or `make demo`) has built it.
"""

from midstream.web.folders import page_folder, unbuilt_folder

__all__ = ["page_folder", "unbuilt_folder"]
