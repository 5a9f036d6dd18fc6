# SPDX-License-Identifier: MIT
"""Archives compressed by zstd. tar runs the program of the package zstd for them, which need not be installed; libzstd, by
which perfmap compresses, is there."""
import ctypes
import io
import tarfile

MOST = 1 << 28  # bytes of an archive that tests make, when expanded


def library():
    """None: this machine has none."""
    try:
        found = ctypes.CDLL("libzstd.so.1")
    except OSError:
        return None
    for function in (found.ZSTD_decompress, found.ZSTD_compress, found.ZSTD_compressBound):
        function.restype = ctypes.c_size_t
    found.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    found.ZSTD_compress.argtypes = [*found.ZSTD_decompress.argtypes, ctypes.c_int]
    found.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    found.ZSTD_isError.argtypes = [ctypes.c_size_t]
    return found


def expanded(data):
    room = ctypes.create_string_buffer(MOST)
    size = library().ZSTD_decompress(room, MOST, data, len(data))
    assert not library().ZSTD_isError(size), "zstd data cannot be expanded"
    return ctypes.string_at(room, size)


def compressed(data):
    most = library().ZSTD_compressBound(len(data))
    room = ctypes.create_string_buffer(most)
    size = library().ZSTD_compress(room, most, data, len(data), 1)
    assert not library().ZSTD_isError(size), "data cannot be compressed"
    return ctypes.string_at(room, size)


def opened(path):
    """The TarFile of an archive."""
    with open(path, "rb") as file:
        return tarfile.open(fileobj=io.BytesIO(expanded(file.read())))


def write(path, directory):
    """Makes an archive of a directory, with its name."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as out:
        out.add(directory)
    with open(path, "wb") as file:
        file.write(compressed(tar.getvalue()))
