"""LZF, the compression inside PCD files: literal runs and short references to what came before.

A control byte c < 32 is followed by c + 1 bytes to copy. Any other one repeats (c >> 5) + 2 bytes
of the output, and as many more as the following byte says if c >> 5 is 7; they begin
1 + 256 (c & 31) + the next byte back.
"""

from perpend.exceptions import InputError

LZF_RATIO = 88  # three bytes make at most 264


def decompress(where: str, data: bytes, size: int) -> bytearray:
    r"""Unpack `data` to exactly `size` bytes, without allocating more.

    >>> bytes(decompress("x.pcd", b"\x02abc\xe0\x01\x02", 13))
    b'abcabcabcabca'
    """
    if size > LZF_RATIO * len(data):
        raise InputError(f"{where}: {len(data)} bytes cannot expand to {size}. It is damaged.")
    out = bytearray(size)
    place = at = 0  # in the output and in the data
    try:
        while at < len(data):
            control = data[at]
            at += 1
            if control < 32:
                length = control + 1
                piece: bytes | bytearray = data[at : at + length]
                at += length
            else:
                length = (control >> 5) + 2
                if length == 9:
                    length += data[at]
                    at += 1
                back = 1 + ((control & 31) << 8) + data[at]
                at += 1
                begin = place - back
                if begin < 0:
                    raise InputError(f"{where}: refers to bytes before its start. It is damaged.")
                if back >= length:
                    piece = out[begin : begin + length]
                else:  # the copy overlaps itself: a pattern repeats
                    piece = (out[begin:place] * (length // back + 1))[:length]
            after = place + length
            if len(piece) < length or after > size:
                raise InputError(f"{where}: its parts do not fit its size. Is it a cut-off copy?")
            out[place:after] = piece
            place = after
    except IndexError as error:
        raise InputError(f"{where}: ends too early. Is it a cut-off copy?") from error
    if place != size:
        raise InputError(f"{where}: unpacks to {place} bytes instead of {size}. It is damaged.")
    return out
