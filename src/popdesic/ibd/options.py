"""Names of the stage's files that rules need; cheap to import."""

from __future__ import annotations

#: File of each format of `export.formats`.
EXPORTS = {"hap-ibd": "hap-ibd.ibd.gz", "ibis": "ibis.seg.gz"}
