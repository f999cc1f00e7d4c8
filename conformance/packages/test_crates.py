"""The crates that the Rust client needs, as crates.io would take them."""

from __future__ import annotations

import io
import sys
import tarfile
import tomllib

import pytest
from rig.router import ROOT

sys.path.insert(0, str(ROOT / "packaging"))
import crate_files
import release

ORDER = ["crosstie-amqp", "crosstie-wamp", "crosstie-auth", "crosstie-client"]


@pytest.fixture(scope="module")
def packed():
    """Return each crate's contents, by file name."""
    made = {}
    for name, data in crate_files.packed().items():
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            files = [member for member in archive if member.isfile()]
            read = {file.name: archive.extractfile(file).read() for file in files}
        made[name.removesuffix(".crate")] = read
    return made


def test_the_client_and_what_it_needs_are_published_in_order(packed):
    number = release.version()
    assert crate_files.published() == ORDER
    assert list(packed) == [f"{name}-{number}" for name in ORDER]


def test_a_crate_has_its_licence_its_page_and_its_sources(packed):
    for name, files in packed.items():
        assert files[f"{name}/LICENSE"] == (ROOT / "LICENSE").read_bytes()
        assert f"{name}/src/lib.rs" in files
        assert len(files[f"{name}/README.md"]) > 300
        folders = {path.split("/")[1] for path in files if path.count("/") > 1}
        assert folders == {"src"} | ({"examples"} if "client" in name else set())


def test_a_manifest_names_no_path_and_the_very_version_of_its_parts(packed):
    number = release.version()
    for name, files in packed.items():
        manifest = tomllib.loads(files[f"{name}/Cargo.toml"].decode())
        package = manifest["package"]
        assert package["license"] == "Apache-2.0"
        assert package["rust-version"]
        assert {"description", "documentation", "keywords", "categories"} <= set(package)
        for kind in ("dependencies", "dev-dependencies"):
            for dependency, terms in manifest.get(kind, {}).items():
                assert "path" not in terms, (name, dependency)
                if dependency.startswith("crosstie-"):
                    assert kind == "dependencies", (name, dependency)
                    assert terms["version"] == f"={number}"


def test_packing_again_makes_equal_files():
    assert crate_files.packed() == crate_files.packed()
