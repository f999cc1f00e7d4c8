"""An image in the layout of the Open Container Initiative, without a daemon."""

from __future__ import annotations

import datetime
import hashlib
import json

from archives import Entry, tar, zstd

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
OCI = "application/vnd.oci.image"
# Of the user in the image. Kubernetes' `runAsNonRoot` accepts a number alone.
USER = 65_532


def layout(
    files: list[Entry], architecture: str, settings: dict, labels: dict[str, str], time: int
) -> bytes:
    """Return the archive of an image with one layer, as `podman load` and `skopeo` read it."""
    layer = tar(files, time, beginning="")
    packed = zstd(layer)
    created = datetime.datetime.fromtimestamp(time, datetime.UTC).isoformat()
    configuration = _json(
        {
            "created": created,
            "architecture": ARCHITECTURES[architecture],
            "os": "linux",
            "config": {**settings, "User": f"{USER}:{USER}", "Labels": labels},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
            "history": [{"created": created, "created_by": "packaging/release.py"}],
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{OCI}.manifest.v1+json",
            "config": _described(f"{OCI}.config.v1+json", configuration),
            "layers": [_described(f"{OCI}.layer.v1.tar+zstd", packed)],
            "annotations": labels,
        }
    )
    version = labels["org.opencontainers.image.version"]
    index = {
        "schemaVersion": 2,
        "mediaType": f"{OCI}.index.v1+json",
        "manifests": [
            {
                **_described(f"{OCI}.manifest.v1+json", manifest),
                "annotations": {"org.opencontainers.image.ref.name": version},
                "platform": {"architecture": ARCHITECTURES[architecture], "os": "linux"},
            }
        ],
    }
    blobs = [
        Entry(f"/blobs/sha256/{hashlib.sha256(blob).hexdigest()}", blob)
        for blob in (packed, configuration, manifest)
    ]
    about = [Entry("/oci-layout", _json({"imageLayoutVersion": "1.0.0"}))]
    return tar([*about, Entry("/index.json", _json(index)), *blobs], time, beginning="")


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _described(media_type: str, blob: bytes) -> dict:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _json(value: dict) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode()
