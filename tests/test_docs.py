"""The pages of the docs: their commands have known options, and the files and modules that they name exist."""

import pkgutil
import re
import shlex
from pathlib import Path

import pytest

from airloc.cli.main import VERBS
from airloc.evaluation.benchmarks.suites import SUITES
from conftest import Airloc

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]


def commands() -> list[tuple[str, str]]:
    """Every `airloc VERB ...` of a shell block and of a model card, with its page; lines are joined."""
    found = []
    for card in sorted((ROOT / "src" / "airloc" / "weights").glob("*/card.md")):
        text = " ".join(card.read_text(encoding="utf-8").split())
        found += [(card.parent.name, line) for line in re.findall(r"`(airloc [a-z][^`]*)`", text)]
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
            lines = block.replace("\\\n", " ").splitlines()
            found += [(page.name, line) for line in lines if line.strip().startswith("airloc ")]
    return found


_HELP: dict[tuple[str, ...], str] = {}


def help_of(airloc: Airloc, words: tuple[str, ...]) -> str:
    """The help of a command and of the subcommands that the words name, each asked for once."""
    if words not in _HELP:
        _HELP[words] = airloc(*words, "--help").out
    return _HELP[words]


@pytest.mark.parametrize(("page", "line"), commands())
def test_every_command_has_a_known_verb_and_known_options(page: str, line: str, airloc: Airloc):
    _, verb, *rest = shlex.split(line, comments=True)
    assert verb in VERBS, page
    command: tuple[str, ...] = (verb,)
    text = help_of(airloc, command)
    for word in rest:
        usage = help_of(airloc, command).partition("\n\n")[0]
        subcommands = re.findall(r"\{([\w,-]+)\}\s*$", usage)
        if (verb, word) in (("train", "belief"), ("train", "locator"), ("train", "text")) or any(
            word in names.split(",") for names in subcommands
        ):
            command = (*command, word)
            text += help_of(airloc, command)
    options = [word.split("=")[0] for word in rest if word.startswith("--")]
    assert [option for option in options if option not in text] == [], line


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f": {page.name}" not in text] == []


def test_the_page_of_all_suites_has_every_suite_with_its_commands_and_its_pictures():
    text = (ROOT / "docs" / "suites.md").read_text(encoding="utf-8")
    for suite in SUITES:
        assert f"| {suite.name} |" in text
        assert [command for command in suite.commands() if f"\n    {command}\n" not in text] == []
    pictures = re.findall(r"\((img/[^)]+)\)", text)
    assert len(pictures) >= 5
    assert [name for name in pictures if not (ROOT / "docs" / name).is_file()] == []


def test_the_paper_map_names_modules_and_tests_that_exist():
    text = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
    modules = re.findall(r"`(airloc\.[a-z_.]+)`", text)
    assert len(modules) > 20
    for name in modules:
        place = ROOT / "src" / Path(*name.split("."))
        parent = place.parent.with_suffix(".py")
        defined = parent.is_file() and f"def {place.name}" in parent.read_text(encoding="utf-8")
        assert place.is_dir() or place.with_suffix(".py").is_file() or defined, name


def test_the_pages_name_tests_that_exist():
    example = "tests/agents/test_agents_compass.py"
    for page in PAGES:
        for path in re.findall(r"`(tests/[\w/.]+)`", page.read_text(encoding="utf-8")):
            assert path == example or (ROOT / path).exists(), (page.name, path)


@pytest.mark.parametrize("page", ["agents", "cluster"])
def test_the_docs_say_that_several_gpus_do_not_train_one_policy(page: str):
    text = " ".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").split())
    assert re.search(r"training uses one GPU[.:] [^.]*torchrun", text)


def test_every_name_in_the_reference_of_the_api_exists_and_is_there_once():
    names = [name for page in PAGES for name in re.findall(r"^::: (\S+)", page.read_text(encoding="utf-8"), flags=re.M)]
    assert len(names) > 10
    assert [name for name in names if names.count(name) > 1] == []
    for name in names:
        assert pkgutil.resolve_name(name) is not None, name


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path):
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True)
    build(config)
    pages = {path.relative_to(tmp_path).parts[0] for path in tmp_path.glob("*/index.html")}
    assert {"reproduce", "cluster", "your-agent", "paper-map", "task", "agents"} <= pages
    assert "GOMAA-Geo" in (tmp_path / "reproduce" / "index.html").read_text(encoding="utf-8")
    first = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert not re.search(r'(?:src|href)="https?://[^"]*\.(?:js|css|woff2?)"', first), "all styles and scripts are in it"
