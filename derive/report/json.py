"""The report as one JSON document, ``derive-report/1``; its schema lies beside this module."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from derive.claim import Counterexample, Evidence, Result, Source
from derive.report import Report, View

SCHEMA = "derive-report/1"


def render(report: Report, view: View) -> str:
    """Return the document; ``view`` changes nothing in it."""
    return (
        json.dumps(document(report), indent=1, ensure_ascii=not view.unicode, allow_nan=False)
        + "\n"
    )


def document(report: Report) -> dict[str, Any]:
    """Return the report as plain data."""
    return {
        "schema": SCHEMA,
        "versions": dict(report.versions),
        "target": report.target,
        "notes": list(report.notes),
        "results": [result(r) for r in report.results],
        "summary": finite(asdict(report.summary)),
    }


def schema() -> dict[str, Any]:
    """Return the JSON schema of the document."""
    from importlib.resources import files

    text = files("derive.report").joinpath("derive-report-1.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def result(r: Result) -> dict[str, Any]:
    """Return one result."""
    claim, verdict = r.claim, r.verdict
    return {
        "claim": claim.id,
        "topic": claim.topic,
        "case": r.case,
        "title": claim.title,
        "statement": r.latex or claim.statement,
        "text": claim.statement,
        "probe": claim.probe or None,
        "assumes": list(claim.assumes),
        "verdict": verdict.name,
        "scope": verdict.scope,
        "proof": verdict.kind or None,
        "expected": claim.expected,
        "ok": r.ok,
        "evidence": [evidence(e) for e in r.evidence],
        "printed": [asdict(p) for p in r.printed],
        "counterexample": counterexample(verdict.counterexample),
        "source": source(claim.source),
        "reason": verdict.reason or claim.reason or None,
        "suggestion": r.suggestion,
    }


def evidence(e: Evidence) -> dict[str, Any]:
    """Return one kind of evidence, with what it adds for its kind."""
    known = asdict(e)
    extra = known.pop("extra")
    return {str(k): finite(v) for k, v in {**extra, **known}.items()}


def source(s: Source | None) -> dict[str, Any] | None:
    """Return where a statement stands."""
    return asdict(s) if s else None


def counterexample(c: Counterexample | None) -> dict[str, Any] | None:
    """Return a counterexample."""
    return {k: finite(v) for k, v in asdict(c).items()} if c else None


def finite(value: Any) -> Any:
    """Return plain data; JSON has no NaN and no infinity, so these become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value if isinstance(value, str | int | bool | None) else str(value)
