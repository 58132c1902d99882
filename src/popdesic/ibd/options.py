"""What rules need of the stage; cheap to import."""

from __future__ import annotations

#: File of each format of `export.formats`.
EXPORTS = {"hap-ibd": "hap-ibd.ibd.gz", "ibis": "ibis.seg.gz"}
