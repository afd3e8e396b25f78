"""What happens while raysim is imported: a check of the packages that Python finds.

raysim's packages `actors` and `results` have common names. A user's file `actors.py` hides the package wherever the
user's folder comes first on Python's path: in scripts, with `python -m raysim`, and on every worker of a Ray job. What
fails then, fails far from the cause, so it is told when raysim is imported and when its command line starts.
"""

from importlib.machinery import PathFinder
from pathlib import Path

PACKAGES = ("actors", "raysim", "results")


class HiddenPackage(ImportError):
    """Another module has the name of one of raysim's packages, and comes first on Python's path."""


def require_own_packages() -> None:
    """Raises HiddenPackage if another module has the name of one of raysim's packages, and would be found first.

    A folder without `__init__.py` hides nothing, and another copy of raysim may come first as a whole.
    """
    here = Path(__file__).resolve().parents[1]
    for name in PACKAGES:
        spec = PathFinder.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        found = Path(spec.origin).resolve()
        folder = found.parents[1] if spec.submodule_search_locations else found.parent
        if folder != here and not all((folder / package / "__init__.py").is_file() for package in PACKAGES):
            raise HiddenPackage(
                f"{found}: it hides raysim's own package {name!r}, which is in {here}, for Python finds it first; "
                "give it another name, or work in another folder"
            )
