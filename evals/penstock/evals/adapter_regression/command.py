"""`evals adapter-regression`: asks, compares, judges, writes, stores."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.evals import options
from penstock.evals.adapter_regression import dataset as datasets
from penstock.evals.adapter_regression import evidence as evidences
from penstock.evals.adapter_regression.asking import Asking, Version, ask_both
from penstock.evals.adapter_regression.comparison import compare, pair
from penstock.evals.adapter_regression.dataset import Dataset
from penstock.evals.adapter_regression.document import Run, as_dict
from penstock.evals.adapter_regression.evidence import Registered, Registry
from penstock.evals.adapter_regression.markdown import as_markdown
from penstock.evals.adapter_regression.page import as_page
from penstock.evals.adapter_regression.scores import scored
from penstock.evals.adapter_regression.thresholds import Thresholds, thresholds
from penstock.evals.adapter_regression.verdict import judge
from penstock.evals.comparison.gate import EXIT_CODES
from penstock.evals.errors import EvalError
from penstock.evals.files import declared as declared_by
from penstock.evals.files import read, write_reports


def adapter_regression(
    deployment: Annotated[str, typer.Option(help="What serves both versions.")],
    candidate: Annotated[str, typer.Option(help="The version in question: name@version.")],
    baseline: Annotated[str, typer.Option(help="What it is compared with: name@version, or base.")],
    dataset: Annotated[Path, typer.Option(help="Prompts and checks: JSON Lines.")],
    threshold: options.Thresholds = None,
    gateway: Annotated[str, typer.Option(help="The gateway's address.")] = "http://127.0.0.1:8080",
    out: Annotated[Path, typer.Option(help="Folder for report.json, .md and .html.")] = Path(
        "build/adapter-regression"
    ),
    api_key: options.ApiKey = "",
    concurrency: options.Concurrency = 4,
    seed: options.Seed = 0,
    max_tokens: options.MaxTokens = 256,
    temperature: options.Temperature = 0.0,
    timeout: options.Timeout = 120.0,
    store: Annotated[
        bool, typer.Option("--store", help="Store the report with the candidate.")
    ] = False,
    admin: Annotated[str, typer.Option(help="The head's admin API.")] = "http://127.0.0.1:8081",
    token_file: Annotated[Path | None, typer.Option(help="The token for it.")] = None,
) -> None:
    """Whether an adapter version answers worse than another: pass, fail, or not enough to tell."""
    with options.told_in_a_line():
        versions = _versions(deployment, candidate, baseline)
        declared = thresholds(declared_by(threshold or []))
        prompts = datasets.parse(read(dataset), declared.refusals)
        declared.check(prompts.kinds, references=any(p.references for p in prompts.prompts))
        target = _target(versions[0], admin, token_file) if store else None
        asking = Asking(
            gateway.rstrip("/"),
            api_key,
            concurrency,
            seed,
            max_tokens,
            temperature,
            timeout,
            options.tell,
        )
        run = measure(versions, prompts, dataset.name, declared, asking)
        report = as_dict(run)
        write_reports(out, report, as_markdown(run), as_page(run))
        if target is not None:
            _store(versions[0], target, report)
    typer.echo(as_markdown(run))
    typer.echo(f"{out / 'report.html'} shows it.", err=True)
    raise typer.Exit(EXIT_CODES[run.verdict.result])


def measure(
    versions: tuple[Version, Version],
    dataset: Dataset,
    name: str,
    declared: Thresholds,
    asking: Asking,
) -> Run:
    """Asks both versions everything, and judges. Raises `EvalError`."""
    answers = ask_both(dataset.prompts, *versions, asking)
    pairs = [
        pair(
            prompt,
            scored(prompt, of, declared.refusals),
            scored(prompt, to, declared.refusals),
            declared.tie_margin,
        )
        for prompt, (of, to) in zip(dataset.prompts, answers, strict=True)
    ]
    comparison = compare(pairs, declared.confidence, asking.seed)
    at = datetime.now(UTC)
    verdict = judge(comparison, declared)
    return Run(at, *versions, dataset, name, asking, declared, comparison, verdict)


def _versions(deployment: str, candidate: str, baseline: str) -> tuple[Version, Version]:
    of, to = Version.parse(deployment, candidate), Version.parse(deployment, baseline)
    if of.ref is None:
        raise EvalError("the candidate has to be name@version: the base model is no adapter")
    if of == to:
        raise EvalError(f"candidate and baseline are both {of}: nothing to compare")
    return of, to


def _target(version: Version, admin: str, token_file: Path | None) -> tuple[Registry, Registered]:
    if token_file is None or version.ref is None:
        raise EvalError("--store needs --token-file: a token that may change adapters")
    registry = Registry(admin, read(token_file).decode(errors="replace").strip())
    return registry, registry.registered(version.ref)


def _store(version: Version, target: tuple[Registry, Registered], report: dict[str, Any]) -> None:
    registry, registered = target
    if version.ref is not None:
        registry.store(version.ref, evidences.evidence(report, registered))
        typer.echo(f"Stored with {version.ref} at {registry.url}.", err=True)
