"""Valid scenes and clouds for ``fuzz.py``, small: name to content, the first one is read."""

import io
import sys
import tempfile
from pathlib import Path

import numpy as np

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(30, 3)) * 20
CUBE = RNG.integers(1, 99, (6, 5, 4))
LARGER = RNG.integers(1, 99, (12, 10, 4))  # than its header, so that the tests cut this one
ENVI = """ENVI
samples = 10
lines = 12
bands = 4
header offset = 0
data type = {code}
interleave = {interleave}
byte order = {order}
wavelength units = Nanometers
wavelength = {{400, 500, 600, 700}}
bbl = {{1, 1, 0, 1}}
data ignore value = 7
map info = {{UTM, 1, 1, 500000.0, 4100000.0, 30.0, 30.0, 11, North, WGS-84}}
"""
PLY = """ply
format {kind} 1.0
{before}element vertex 30
property double x
property double y
property double z
{after}end_header
"""
FACES = "element face 3\nproperty list uchar int vertex_indices\n"


def envi():
    for interleave, code, order in [("bip", 4, 0), ("bil", 2, 1), ("bsq", 5, 0), ("bsq", 12, 1)]:
        dtype = "<>"[order] + {4: "f4", 2: "i2", 5: "f8", 12: "u2"}[code]
        header = ENVI.format(code=code, interleave=interleave, order=order).encode()
        yield {"x.hdr": header, "x.img": LARGER.astype(dtype).tobytes()}


def ply():
    faces = [b"3 0 1 2\n" * 3, (b"\3" + np.arange(3, dtype="<i4").tobytes()) * 3]
    text = b"".join(b"%r %r %r\n" % tuple(row) for row in POINTS.tolist())
    for first in (True, False):
        parts = {"before": FACES if first else "", "after": "" if first else FACES}
        for kind, body, mesh in [
            ("ascii", text, faces[0]),
            ("binary_little_endian", POINTS.tobytes(), faces[1]),
            ("binary_big_endian", POINTS.astype(">f8").tobytes(), b"\1\0\0\0\1" * 3),
        ]:
            head = PLY.format(kind=kind, **parts).encode()
            yield {"x.ply": head + (mesh + body if first else body + mesh)}


def pcd():
    import pypcd4

    for kind in ("ascii", "binary", "binary_compressed"):
        for points in (POINTS.round(), np.full((30, 3), 2.5)):
            stream = io.BytesIO()
            cloud = pypcd4.PointCloud.from_xyz_points(points.astype("f4"))
            cloud.save(stream, encoding=pypcd4.Encoding(kind))
            yield {"x.pcd": stream.getvalue()}


def kitti():
    scan = np.column_stack([POINTS, np.linspace(0, 1, 30)]).astype("<f4")
    yield {"x.bin": scan[:29].tobytes()}  # a prime: no part that the tests cut off is whole


def _las(suffix):
    import laspy

    for version, point_format in [("1.2", 3), ("1.4", 6)]:
        header = laspy.LasHeader(version=version, point_format=point_format)
        header.add_extra_dim(laspy.ExtraBytesParams("echo", "float32"))
        las = laspy.LasData(header)
        las.xyz = POINTS
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"x{suffix}"
            las.write(path)
            yield {path.name: path.read_bytes()}


def las():
    yield from _las(".las")


def laz():
    yield from _las(".laz")


def geotiff():
    import rasterio

    size = {"height": 6, "width": 5, "count": 4, "crs": "EPSG:32611"}
    place = {"transform": rasterio.Affine(30, 0, 500000, 0, -30, 4100000)}
    for dtype, more in [
        ("float32", {"nodata": 7}),
        ("int16", {"compress": "deflate", "interleave": "pixel"}),
        ("uint8", {"compress": "lzw", "tiled": True, "blockxsize": 16, "blockysize": 16}),
        ("float64", {"compress": "deflate", "predictor": 3}),
    ]:
        with rasterio.MemoryFile() as memory:
            with memory.open(driver="GTiff", dtype=dtype, **size, **place, **more) as file:
                file.write(np.moveaxis(CUBE, -1, 0).astype(dtype))
            yield {"x.tif": bytes(memory.getbuffer())}


def tifffile():
    import tifffile as library

    sys.modules["rasterio"] = None  # as if it were not installed
    for planar, dtype, more in [
        ("contig", "u2", {}),
        ("contig", "f4", {"compression": "zlib"}),
        ("contig", "u1", {"tile": (16, 16), "compression": "zlib"}),
        ("separate", "f8", {"bigtiff": True}),
        (None, "i2", {"byteorder": ">"}),
    ]:
        stream = io.BytesIO()
        cube = CUBE if planar == "contig" else np.moveaxis(CUBE, -1, 0)
        library.imwrite(
            stream, cube.astype(dtype), photometric="minisblack", planarconfig=planar, **more
        )
        yield {"x.tif": stream.getvalue()}


SAMPLES = {
    sample.__name__: sample for sample in (envi, ply, pcd, kitti, las, laz, geotiff, tifffile)
}
