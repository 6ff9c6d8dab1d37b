"""What a run found, in sentences, for the reports. Pure."""

from __future__ import annotations

from penstock.evals.comparison.figures import counted
from penstock.evals.comparison.pair import Pair
from penstock.evals.quantization_regression.document import Run
from penstock.evals.quantization_regression.verdict import Slice, harm
from penstock.evals.shadow_compare.asking import Line


def facts(run: Run) -> str:
    """What was asked, when."""
    return (
        f"{counted(len(run.dataset), 'prompt')} of {run.dataset_name} (SHA-256 {run.sha256[:12]}), "
        f"{run.at:%Y-%m-%d %H:%M} UTC, seed {run.asking.seed}, temperature "
        f"{run.asking.temperature:g}, at most {run.asking.max_tokens} tokens an answer."
    )


def of_slice(part: Slice) -> tuple[str, ...]:
    """What was counted and how likely each found the primary's texts."""
    told = [f"{part.prompts:,} prompts, of which {len(part.pairs):,} count."]
    told += [f"Left out, {why}: {count:,}." for why, count in part.left_out.items()]
    if part.perplexity is not None:
        of, to = part.perplexity
        told.append(
            f"Perplexity of the primary's texts, {part.tokens:,} tokens: {of:.3f} by the primary, "
            f"{to:.3f} by the candidate."
        )
    return tuple(told)


def worst(run: Run, most: int) -> list[tuple[Line, Pair]]:
    """The prompts whose texts the candidate finds much less likely than the primary does; those
    that it alone did not answer first."""

    def badness(pair: Pair) -> float:
        return float("inf") if pair.candidate.failed else harm(pair) or 0.0

    both = [
        (line, pair)
        for line, pair in zip(run.dataset, run.pairs, strict=True)
        if not pair.primary.failed and badness(pair) > 0
    ]
    return sorted(both, key=lambda each: (-badness(each[1]), each[1].id))[:most]


def title(line: Line, pair: Pair) -> str:
    """Of one prompt: its name, its slice, and by how much the candidate is worse."""
    of = f", {line.slice}" if line.slice else ""
    apart = harm(pair)
    return f"{pair.id}{of}" + ("" if apart is None else f": perplexity x{2**apart:.2f}")
