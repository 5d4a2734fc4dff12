#!/usr/bin/env python3
"""Writes an image with nothing but the static binary: scripts/oci.py BINARY ARCH VERSION OUT.tar

The archive is an OCI image layout (image-spec 1.1) with the index of `docker save` beside it, so that `podman load`,
`skopeo` and `docker load` take it. No daemon is needed to make it.
"""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
from datetime import datetime, timezone

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
WHEN = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def add(archive: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(data), mode, WHEN
    archive.addfile(entry, io.BytesIO(data))


def directory(archive: tarfile.TarFile, name: str, mode: int = 0o755) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, mode, WHEN
    archive.addfile(entry)


def layer(binary: bytes) -> bytes:
    """A root with the command, a place for run states, and one for temporary files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in ("etc", "run", "usr", "usr/bin"):
            directory(archive, name)
        directory(archive, "tmp", 0o1777)
        add(archive, "usr/bin/trunkline", binary, 0o755)
        add(archive, "etc/passwd", b"root:x:0:0:root:/:/usr/bin/trunkline\n")
    return out.getvalue()


def main() -> None:
    path, machine, version, target = sys.argv[1:]
    with open(path, "rb") as file:
        plain = layer(file.read())
    packed = gzip.compress(plain, 9, mtime=WHEN)
    created = datetime.fromtimestamp(WHEN, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = json.dumps({
        "created": created,
        "architecture": ARCHITECTURES[machine],
        "os": "linux",
        "config": {"Entrypoint": ["/usr/bin/trunkline"], "Env": ["PATH=/usr/bin"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
        "history": [{"created": created, "created_by": "make dist"}],
    }).encode()

    def described(kind: str, data: bytes) -> dict:
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": len(data)}

    kinds = ("config.v1+json", "layer.v1.tar+gzip")
    blobs = [described(kind, data) for kind, data in zip(kinds, (config, packed))]
    manifest = json.dumps({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blobs[0],
        "layers": blobs[1:],
    }).encode()
    name = f"trunkline:{version}"
    index = described("manifest.v1+json", manifest)
    index["annotations"] = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": name}

    def place(blob: dict) -> str:
        return "blobs/sha256/" + blob["digest"].removeprefix("sha256:")

    with tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as archive:
        add(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        add(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": [index]}).encode())
        add(archive, "manifest.json", json.dumps([
            {"Config": place(blobs[0]), "RepoTags": [name], "Layers": [place(blobs[1])]}
        ]).encode())
        for blob, data in ((blobs[0], config), (blobs[1], packed), (index, manifest)):
            add(archive, place(blob), data)


if __name__ == "__main__":
    main()
