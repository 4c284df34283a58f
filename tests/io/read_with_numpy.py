"""Reads with NumPy alone what write_for_numpy wrote, and compares every value.

Usage: read_with_numpy.py PROGRAM      PROGRAM is the built write_for_numpy; exit status 0 when all is right.
"""
import json
import subprocess
import sys
import tempfile

import numpy as np

TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U64": "<u8", "U8": "u1"}


def crc64_xz(data):
    crc = 2**64 - 1
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xC96C5795D7870F42 if crc & 1 else 0)
    return crc ^ 2**64 - 1


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors, end = {}, 0
    for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, past = t["data_offsets"]
        assert begin == end, f"{name} does not follow the tensor before it"
        flat = np.frombuffer(data[8 + length + begin : 8 + length + past], dtype=TYPES[t["dtype"]])
        assert begin % flat.itemsize == 0, f"{name} is not aligned"
        tensors[name], end = flat.reshape(t["shape"]), past
    assert 8 + length + end == len(data) and (8 + length) % 64 == 0
    checksum = metadata.pop("isogloss.checksum")
    at = data.index(checksum.encode())
    assert crc64_xz(data[:at] + b"0" * 16 + data[at + 16 :]) == int(checksum, 16), "checksum"
    return tensors, metadata


def main(program):
    e = (np.arange(12, dtype=np.float32) / np.float32(7)).reshape(4, 3)
    expected = {
        "E": e,
        "vocabulary": np.frombuffer("the\n€\n".encode(), np.uint8),
        "update/E.m": np.array([1 / 3, -0.0, 1e300]),
        "tokens": np.array([[-1], [0], [2**31 - 1]], np.int32),
        "counter": np.array(2**64 - 1, np.uint64),
        "epoch": np.array(-3, np.int64),
        "nothing": np.zeros((0, 5), np.float32),
    }
    words, vectors = ["the", "€", "12"], e.reshape(3, 4)
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([program, directory], check=True)

        tensors, metadata = read_safetensors(directory + "/model.safetensors")
        assert metadata == {"isogloss.format": "1", "cell": "lstm", 'quote"': "line\nend é"}, metadata
        assert tensors.keys() == expected.keys(), tensors.keys()
        for name, value in expected.items():
            found = tensors[name]
            assert found.dtype == value.dtype and found.shape == value.shape, (name, found.dtype, found.shape)
            assert found.tobytes() == value.tobytes(), name

        for file, skip in ("words.txt", 1), ("glove.txt", 0):
            with open(f"{directory}/{file}", encoding="utf-8") as f:
                rows = [line.rstrip("\n").split(" ") for line in f][skip:]
            assert [row[0] for row in rows] == words, file
            assert (np.array([row[1:] for row in rows], np.float32) == vectors).all(), file

        with open(f"{directory}/words.bin", "rb") as f:
            assert f.readline() == b"3 4\n"
            for word, vector in zip(words, vectors):
                assert f.read(len(word.encode()) + 1) == word.encode() + b" "
                assert f.read(16) == vector.tobytes() and f.read(1) == b"\n"
            assert f.read() == b""


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
