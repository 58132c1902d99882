"""Names in `ingest.filter` that no file declares."""

from popdesic.io.call_filters import CallFilters
from popdesic.study.validation import _remark_on_filter_names

HEAD = "##fileformat=VCFv4.2\n{}#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tA\n"


def test_a_name_of_no_header_is_said(tmp_path):
    sources = [tmp_path / "one.vcf", tmp_path / "two.vcf"]
    lines = ('##FILTER=<ID=LowQual,Description="x">\n', '##FILTER=<Description="x",ID=q10>\n')
    for source, line in zip(sources, lines, strict=True):
        source.write_text(HEAD.format(line))
    for names in ((), ("*",), ("PASS",), ("q10", "LowQual")):
        assert _remark_on_filter_names(CallFilters(names), sources) == []
    (said,) = _remark_on_filter_names(CallFilters(("q10", "LowQal")), sources)
    assert "ingest.filter names LowQal, which no" in said and "declare LowQual, q10" in said
    (said,) = _remark_on_filter_names(CallFilters(("q10",)), sources[:1])
    assert "names q10" in said
