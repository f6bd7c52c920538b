"""The belief searcher from pictures: its relation network, in one folder.

FOLDER/relation    the run of the relation network
FOLDER/agent       the checkpoint of the searcher
"""

from collections.abc import Callable
from pathlib import Path

import torch

from airloc.agents.checkpoint import load_checkpoint
from airloc.agents.searchers import SEARCHERS, load_relation, save_searcher
from airloc.agents.shipped import folder_of
from airloc.errors import AirlocError
from airloc.training.data import terms, validation_areas
from airloc.training.relation import GRID, RelationConfig, train_relation, validate
from airloc.vision.relation import RelationNetwork


def train_searcher(
    folder: Path,
    config: RelationConfig,
    *,
    device: torch.device,
    command: str,
    on_step: Callable[[str, int, dict[str, float]], None],
) -> None:
    """Train a relation network and write the searcher's checkpoint; run again, it goes on where it stopped."""
    torch.manual_seed(config.seed)
    network, known = _begin(config)
    network.to(device)
    train_relation(
        folder / "relation", config, network, on_step=lambda step, figures: on_step("relation", step, figures)
    )
    figures = validate(network, validation_areas(config.data, GRID))
    parts = (terms(config.data), config.pairs.terms, known)
    under = " and ".join(dict.fromkeys(filter(None, parts)))
    save_searcher(
        folder / "agent", network.cpu(), {"terms": under} if under else {}, card(config, figures, command, under)
    )


def _begin(config: RelationConfig) -> tuple[RelationNetwork, str]:
    """The network that training begins with, and the terms it is under."""
    if not config.start:
        return RelationNetwork(config.width), ""
    shipped = SEARCHERS.get(config.start)
    place = folder_of(shipped.checkpoint, config.start, "airloc train belief") if shipped else Path(config.start)
    checkpoint = load_checkpoint(place)
    network = load_relation(checkpoint)
    if network.width != config.width:
        problem = f"{config.start!r} has the width {network.width}, and {config.width} is asked for"
        raise AirlocError(problem, f"Give --width {network.width}, or other weights to --start with")
    return network, checkpoint.config.get("terms", "")


def card(config: RelationConfig, figures: dict[str, float], command: str, under: str = "") -> str:
    """What the weights are, in Markdown; `under` names terms other than the project's licence."""
    sets = ", ".join(config.data.sets) if config.data.root else "none"
    paired = f"; pairs of {config.pairs.pairs.name}" if config.pairs.pairs else ""
    paired += f"; {config.pairs.struck} procedural pairs" if config.pairs.struck else ""
    begun = f"- Begun with the weights of `{config.start}`.\n" if config.start else ""
    return (
        "# belief\n\n"
        "- What: the relation network of a belief searcher.\n"
        f"- Data: sets {sets}; {config.data.synthetic} procedural areas{paired}.\n{begun}"
        f"- Terms: {under + ', not the licence of airloc' if under else 'those of the data it was trained on'}.\n"
        f"- Made by: `{command}`\n"
        f"- On the validation areas: 8-way accuracy of adjacent pairs {100 * figures['val_accuracy']:.1f} %, "
        f"loss of single glimpses {figures['val_pair_loss']:.3f}.\n"
    )
