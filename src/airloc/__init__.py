"""airloc: find a place from above, one glimpse at a time.

Importing the package registers the Gymnasium environments `airloc/Search-5x5-v0`, `airloc/Search-7x7-v0` and
`airloc/Search-v0` (any grid, by arguments).
"""

from gymnasium.envs.registration import register

__version__ = "0.1.0"

for _name, _grid in (("Search-5x5", "5x5"), ("Search-7x7", "7x7"), ("Search", "5x5")):
    register(
        f"airloc/{_name}-v0",
        entry_point="airloc.task.env:SearchEnv",
        vector_entry_point="airloc.task.vector_env:SearchVectorEnv",
        kwargs={"grid": _grid},
    )
