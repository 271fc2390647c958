"""``tf.io.gfile``: TF 2's names for files."""

from headrace.api.platform.file_io import FileIO as GFile
from headrace.api.platform.gfile import copy_v2 as copy
from headrace.api.platform.gfile import exists_v2 as exists
from headrace.api.platform.gfile import glob_v2 as glob
from headrace.api.platform.gfile import isdir_v2 as isdir
from headrace.api.platform.gfile import listdir_v2 as listdir
from headrace.api.platform.gfile import makedirs_v2 as makedirs
from headrace.api.platform.gfile import mkdir_v2 as mkdir
from headrace.api.platform.gfile import remove_v2 as remove
from headrace.api.platform.gfile import rename_v2 as rename
from headrace.api.platform.gfile import rmtree_v2 as rmtree
from headrace.api.platform.gfile import stat_v2 as stat
from headrace.api.platform.gfile import walk_v2 as walk

__all__ = [
    "GFile", "copy", "exists", "glob", "isdir", "listdir", "makedirs", "mkdir", "remove", "rename",
    "rmtree", "stat", "walk",
]  # fmt: skip
