"""Writes TensorBoard event files with nothing but the standard library.

An event file is a row of records: length, CRC of the length, the event, CRC of the event. The CRC is Castagnoli's,
rotated and shifted as TFRecord wants it. An event is a small protobuf message (tensorflow/core/util/event.proto), of
which scalars need six fields; that is little enough to write by hand and saves every job a 300 MB dependency.
"""

import os
import struct
import time


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC_TABLE = _crc_table()


def _masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(number):
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _bytes_field(number, data):
    return _varint(number << 3 | 2) + _varint(len(data)) + data


class EventWriter:
    """One event file in `folder`; `scalars` appends a step's figures to it."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, f"events.out.tfevents.{int(time.time())}.{os.uname().nodename}.{os.getpid()}")
        self._file = open(self.path, "wb")
        self._record(_bytes_field(3, b"brain.Event:2"))

    def scalars(self, step, **figures):
        summary = b""
        for tag, figure in figures.items():
            value = _bytes_field(1, tag.encode()) + b"\x15" + struct.pack("<f", figure)
            summary += _bytes_field(1, value)
        self._record(b"\x10" + _varint(step) + _bytes_field(5, summary))

    def close(self):
        self._file.close()

    def _record(self, content):
        event = b"\x09" + struct.pack("<d", time.time()) + content
        length = struct.pack("<Q", len(event))
        self._file.write(length + _masked_crc(length) + event + _masked_crc(event))
        self._file.flush()  # A board beside the job shows the step at once.
