"""A list of the packages in a program, in the form of CycloneDX 1.5."""

from __future__ import annotations

import datetime
import json
import tomllib
import uuid
from pathlib import Path


def bill(name: str, metadata: dict, lock: Path, time: int) -> bytes:
    """Return the bill of a program's packages, from what `cargo metadata` says of one platform."""
    packages = {package["id"]: package for package in metadata["packages"]}
    linked = {
        node["id"]: [
            each["pkg"]
            for each in node["deps"]
            if any(kind["kind"] is None for kind in each["dep_kinds"])
        ]
        for node in metadata["resolve"]["nodes"]
    }
    [root] = [key for key, package in packages.items() if package["name"] == name]
    found, new = {root}, [root]
    while new:
        for key in linked[new.pop()]:
            if key not in found:
                found.add(key)
                new.append(key)
    locked = tomllib.loads(lock.read_text())["package"]
    sums = {(each["name"], each["version"]): each.get("checksum") for each in locked}
    ordered = sorted(found - {root}, key=lambda key: _place(packages[key]))
    components = [_component(packages[key], sums) for key in ordered]
    identity = f"{name} {packages[root]['version']} {time} {[each['purl'] for each in components]}"
    bill_of_materials = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, identity)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(time, datetime.UTC).isoformat(),
            "component": {**_component(packages[root], sums), "type": "application"},
        },
        "components": components,
        "dependencies": [
            {
                "ref": _reference(packages[key]),
                "dependsOn": sorted({_reference(packages[each]) for each in linked[key]}),
            }
            for key in [root, *ordered]
        ],
    }
    return json.dumps(bill_of_materials, indent=1).encode() + b"\n"


def _place(package: dict) -> tuple[str, str]:
    return package["name"], package["version"]


def _reference(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def _component(package: dict, sums: dict) -> dict:
    component = {
        "type": "library",
        "bom-ref": _reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": _reference(package),
    }
    if package["license"]:
        # Cargo once allowed a slash for "or".
        expression = package["license"].replace("/", " OR ")
        component["licenses"] = [{"expression": expression}]
    if checksum := sums.get(_place(package)):
        component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return component
