"""Policy training: the loop, its run folder and its settings."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from airloc.agents.policy import VARIANTS, Policy, Variant
from airloc.errors import AirlocError
from airloc.evaluation.metrics import blind_optimum
from airloc.grid import Grid
from airloc.task.suites import all_pairs
from airloc.training import reinforce, runs
from airloc.training.atlas import Atlas
from airloc.training.features import FeatureTable
from airloc.training.learner import Learner
from airloc.training.reinforce import (
    PolicyConfig,
    PolicyResult,
    Validation,
    crop_areas,
    finished_result,
    sample_episodes,
    train_policy,
)
from airloc.training.runs import Run
from airloc.vision.position import encode_position

pytestmark = pytest.mark.long

SMALL, SHORT = Grid(4, 4), 5
"""Grid and budget of the runs that train."""
CPU = torch.device("cpu")


class KilledError(Exception):
    """Stands for a kill."""


def silent(done, metrics):
    del done, metrics


def hinted(areas: int, seed: int, noise: float = 0.5) -> FeatureTable:
    """Areas in which an adjacent goal's direction shows in c, blurred, and nothing else does."""
    chance, code = (torch.Generator().manual_seed(number) for number in (seed, 7))
    cells = torch.tensor([*SMALL.cells(), (99, 99)])
    step = cells[:-1] - cells[:, None]  # from every cell, black last, to every goal
    step[step.abs().amax(dim=2) > 1] = 0
    meaning = torch.randn(9, 256, generator=code)[(step[..., 0] + 1) * 3 + step[..., 1] + 1]  # (n + 1, n, 256)
    seen = meaning + noise * torch.randn(areas, *meaning.shape, generator=chance)
    table = torch.cat([seen, torch.zeros(*seen.shape[:-1], 8)], dim=3).flatten(0, 2)
    return FeatureTable(SMALL, areas, table, encoded(SHORT), SHORT)


def encoded(reach: int) -> torch.Tensor:
    line = torch.arange(-reach, max(SMALL.shape) + reach)
    return encode_position(torch.cartesian_prod(line, line).reshape(len(line), len(line), 2))


def tiny(**settings) -> PolicyConfig:
    settings = {"episodes": 320, "batch": 16, "validate_every": 5, **settings}
    return PolicyConfig(grid="4x4", budget=SHORT, variant=VARIANTS["airloc-no-residual"], **settings)


@pytest.fixture(scope="module")
def small() -> FeatureTable:
    return hinted(1, seed=3)


def test_it_learns_to_search_far_above_the_best_blind_path(tmp_path):
    """A world in which only a goal next door shows: searching it takes memory, recognising it takes learning."""
    config = tiny(episodes=12_800, batch=64, learning_rate=2e-3, validate_every=50)
    unseen = hinted(3, seed=2)
    torch.manual_seed(config.seed)
    start = float(Validation(unseen, 1).success(Policy(config.variant), SHORT))
    floor = blind_optimum(all_pairs(["area"], SMALL, budget=SHORT, equal_distances=True))
    trained = train_policy(tmp_path, config, hinted(10, seed=1), unseen, on_step=silent)
    assert floor == pytest.approx(0.4025, abs=1e-3)
    assert start < 0.25
    assert trained.success[0] > floor + 0.3


@pytest.mark.parametrize("seconds", [30.0, 0.0])
def test_a_run_killed_between_two_saves_resumes_and_ends_with_the_same_weights(small, tmp_path, monkeypatch, seconds):
    """With no seconds between saves, the state is saved between validations too."""
    whole = train_policy(tmp_path / "whole", tiny(seeds=2), small, small, on_step=silent)
    updates = []
    monkeypatch.setattr(runs, "SAVE_SECONDS", seconds)

    def killed(features, policies, batch):
        updates.append(0)
        if len(updates) in (8, 12):  # the second time in the resumed run
            raise KilledError
        return sample_episodes(features, policies, batch)

    monkeypatch.setattr(reinforce, "sample_episodes", killed)
    for saved in (4, 4) if seconds else (6, 9):
        with pytest.raises(KilledError):
            train_policy(tmp_path / "broken", tiny(seeds=2), small, small, on_step=silent)
        assert runs.read_state(tmp_path / "broken" / "state.pt")[0] == saved
    resumed = train_policy(tmp_path / "broken", tiny(seeds=2), small, small, on_step=silent)
    assert resumed.success == whole.success
    assert all(torch.equal(resumed.policies[name], tensor) for name, tensor in whole.policies.items())
    assert (tmp_path / "broken" / "metrics.jsonl").read_bytes() == (tmp_path / "whole" / "metrics.jsonl").read_bytes()


def test_stacked_policies_learn_as_each_would_alone(small, tmp_path, monkeypatch):
    """Two policies from the same weights, given the same episodes and the same chance, stay the same as one alone."""

    def alike(policies: int) -> dict[str, torch.Tensor]:
        made, drawn = reinforce.Policy, reinforce.sample_episodes
        steps = []

        def twins(variant: Variant, count: int) -> Policy:
            torch.manual_seed(3)
            one, all_of_them = made(variant), made(variant, count)
            all_of_them.load_state_dict({name: t.expand(count, *t.shape[1:]) for name, t in one.state_dict().items()})
            return all_of_them

        def draw(features, count, batch):
            steps.append(0)
            torch.manual_seed(len(steps))
            return reinforce_episodes(*(part.expand(count, *part.shape[1:]) for part in drawn(features, 1, batch)))

        reinforce_episodes = type(drawn(small, 1, 1))
        with monkeypatch.context() as patch:
            patch.setattr(reinforce, "Policy", twins)
            patch.setattr(reinforce, "sample_episodes", draw)
            patch.setattr(reinforce, "_gumbel_noise", _same_for_all)
            folder = tmp_path / str(policies)
            return train_policy(folder, tiny(seeds=policies), small, small, on_step=silent).policies

    one, two = alike(1), alike(2)
    for name in one:
        for k in range(2):
            torch.testing.assert_close(two[name][k], one[name][0], rtol=1e-4, atol=1e-5)


def _same_for_all(policy: Policy, budget: int, batch: int, *, sample: bool) -> torch.Tensor:
    """Noise that is drawn once and shared by all policies."""
    return -torch.empty(budget, 1, batch, 8).exponential_().log() * sample


def test_policies_learn_apart_and_each_keeps_its_best(small, tmp_path):
    logged = []
    trained = train_policy(tmp_path, tiny(seeds=3), small, small, on_step=lambda *step: logged.append(step))
    assert [done for done, _ in logged] == [80, 160, 240, 320]
    assert len({tensor[k].numpy().tobytes() for tensor in [trained.policies["read"]] for k in range(3)}) == 3
    assert logged[-1][1]["val_best"] == pytest.approx(np.mean(trained.success))
    for k in range(3):
        best = Policy(tiny().variant)
        best.load_state_dict({name: tensor[[k]] for name, tensor in trained.policies.items()})
        assert float(Validation(small, 1).success(best, SHORT)) == pytest.approx(trained.success[k], abs=1e-5)


def larger() -> FeatureTable:
    """Something else to see, on a grid of 5 x 5."""
    chance, grid, reach = torch.Generator().manual_seed(9), Grid(5, 5), 10
    table = torch.randn(26 * 25, 264, generator=chance)
    return FeatureTable(grid, 1, table, torch.randn(25, 25, 256, generator=chance), reach)


def test_success_on_a_larger_grid_is_logged_and_selects_only_if_configured(small, tmp_path):
    logged = {}
    for select in ("own", "both"):
        steps = logged.setdefault(select, [])
        trained = train_policy(
            tmp_path / select,
            tiny(select=select, larger_grid="5x5", learning_rate=1e-2, seeds=2, episodes=160),
            small,
            small,
            larger(),
            on_step=lambda _, metrics, steps=steps: steps.append(metrics),
        )
        assert logged[select][-1]["val_best"] == pytest.approx(np.mean(trained.success))
        for k in range(2):
            best = Policy(tiny().variant)
            best.load_state_dict({name: tensor[[k]] for name, tensor in trained.policies.items()})
            own, beyond = (
                float(Validation(features, 1).success(best, budget))
                for features, budget in ((small, SHORT), (larger(), 10))
            )
            kept = own if select == "own" else (own + beyond) / 2
            assert trained.success[k] == pytest.approx(kept, abs=1e-5)
    assert all(0 <= metrics["val_success_5x5"] <= 1 for metrics in logged["own"])
    without = [{k: v for k, v in metrics.items() if k != "val_best"} for metrics in logged["own"]]
    assert without == [{k: v for k, v in metrics.items() if k != "val_best"} for metrics in logged["both"]]


def test_choosing_by_a_larger_grid_needs_areas_of_its_size(small, tmp_path):
    with pytest.raises(AirlocError, match=r"7x7.*--select"):
        train_policy(tmp_path, tiny(select="both"), small, small, on_step=silent)


def test_a_rate_that_falls_falls_along_a_line_to_a_fiftieth(small, tmp_path, monkeypatch):
    rates = []
    monkeypatch.setattr(Learner, "set_learning_rate", lambda self, learning_rate: rates.append(learning_rate))
    config = tiny(anneal=True, learning_rate=1e-2)
    train_policy(tmp_path, config, small, small, on_step=silent)
    assert rates == pytest.approx([1e-2 * max(1 - step / config.steps, 0.02) for step in range(config.steps)])


@pytest.mark.gpu
def test_on_a_gpu_training_is_captured_and_learns(tmp_path):
    config = tiny(episodes=12_800, batch=64, learning_rate=2e-3, validate_every=50, seeds=3)
    trained = train_policy(
        tmp_path, config, moved(hinted(10, seed=1), "cuda"), moved(hinted(3, seed=2), "cuda"), on_step=silent
    )
    assert max(trained.success) > 0.8, "about one seed in six stays with a blind path, on the CPU too"


def test_the_last_updates_are_validated_too(small, tmp_path):
    logged = []
    config = tiny(episodes=7 * 16 + 3, validate_every=5)
    trained = train_policy(tmp_path / "a", config, small, small, on_step=lambda done, f: logged.append((done, f)))
    assert [done for done, _ in logged] == [80, 112]
    assert all(0 <= metrics["success"] <= 1 for _, metrics in logged)
    assert trained.success[0] >= 0
    rare = train_policy(tmp_path / "b", tiny(episodes=32, validate_every=1000), small, small, on_step=silent)
    assert 0 <= rare.success[0] <= 1, "at least one validation"


def test_it_stops_when_validation_no_longer_improves(small, tmp_path, monkeypatch):
    success = iter([0.5, 0.6, 0.6, 0.4, 0.7])
    monkeypatch.setattr(Validation, "success", lambda *_: torch.tensor([next(success)]))
    logged = []
    config = tiny(patience=2)
    trained = train_policy(tmp_path, config, small, small, on_step=lambda done, f: logged.append(done))
    assert logged == [80, 160, 240, 320]
    assert trained.success == pytest.approx((0.6,))
    again = train_policy(tmp_path, config, small, small, on_step=lambda done, f: logged.append(done))
    assert again.success == trained.success
    assert len(logged) == 4
    assert finished_result(tmp_path, config).success == trained.success


def test_a_run_that_goes_on_has_not_ended(small, tmp_path):
    config = tiny()
    assert finished_result(tmp_path, config) is None

    def stop(done, metrics):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_policy(tmp_path, config, small, small, on_step=stop)
    assert finished_result(tmp_path, config) is None
    trained = train_policy(tmp_path, config, small, small, on_step=silent)
    kept = finished_result(tmp_path, config)
    assert kept.success == trained.success
    assert all(torch.equal(kept.policies[name], tensor) for name, tensor in trained.policies.items())


def test_a_loss_that_is_no_number_stops_it_and_the_last_state_is_kept(small, tmp_path, monkeypatch):
    calls, real = [], reinforce.normalise_by_group

    def breaking(*arguments):
        calls.append(0)
        return real(*arguments) * (math.nan if len(calls) > 7 else 1.0)

    monkeypatch.setattr(reinforce, "normalise_by_group", breaking)
    with pytest.raises(AirlocError, match=r"NaN at step 9"):
        train_policy(tmp_path, tiny(), small, small, on_step=silent)
    with Run.open(tmp_path, tiny()) as run:
        assert run.step == 4
        assert all(tensor.isfinite().all() for tensor in run.state["learner"].values())
        assert all(tensor.isfinite().all() for tensor in run.state["best"].values())


@pytest.mark.parametrize(
    ("success", "median"), [((0.5,), 0), ((0.3, 0.9, 0.5), 2), ((0.1, 0.2, 0.5, 0.4, 0.3), 4), ((0.7, 0.7, 0.7), 1)]
)
def test_the_median_policy_is_kept(success, median):
    assert PolicyResult({}, success).median == median


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"episodes": 63, "batch": 64}, r"63 .* 64.*--episodes"),
        ({"seeds": 0}, "seeds = 0"),
        ({"batch": 0}, "batch = 0"),
        ({"validate_every": 0}, "validate_every = 0"),
        ({"learning_rate": math.nan}, "learning_rate = nan"),
        ({"learning_rate": -1.0}, "learning_rate = -1"),
        ({"gamma": 1.5}, "gamma = 1.5"),
        ({"table_bytes": -1}, "table_bytes = -1"),
    ],
)
def test_invalid_settings_are_refused(settings, said):
    with pytest.raises(AirlocError, match=said):
        replace(PolicyConfig(), **settings)


def test_areas_are_cut_at_any_offset_and_turned_over_in_all_four_flips():
    image = np.random.default_rng(0).integers(0, 256, (220, 230, 3), dtype=np.uint8)
    grid = Grid(4, 4)
    areas = crop_areas(Atlas.from_images([image], [1.0], "cpu"), 3, grid, seed=0)
    assert areas.shape == (12, 204, 204, 3)
    windows = np.lib.stride_tricks.sliding_window_view(image, (204, 204), axis=(0, 1))
    for first in range(0, 12, 4):
        area = areas[first]
        assert (windows == area.transpose(2, 0, 1)).all(axis=(2, 3, 4)).any()
        assert np.array_equal(areas[first + 1], area[:, ::-1])
        assert np.array_equal(areas[first + 2], area[::-1])
        assert np.array_equal(areas[first + 3], area[::-1, ::-1])
    assert np.array_equal(areas, crop_areas(Atlas.from_images([image], [1.0], "cpu"), 3, grid, seed=0))
    assert len(crop_areas(Atlas.from_images([image], [1.0], "cpu"), 257, Grid(1, 2), seed=0)) == 4 * 257


def moved(features: FeatureTable, device: str) -> FeatureTable:
    return FeatureTable(
        features.grid, features.areas, features.table.to(device), features.positions.to(device), features.reach
    )
