"""The checksum of the files that the library writes."""


def crc64(content):
    """CRC-64/XZ, as the library writes it."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0xC96C5795D7870F42 if byte & 1 else 0)
        table.append(byte)
    crc = 2**64 - 1
    for byte in content:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ (2**64 - 1)
