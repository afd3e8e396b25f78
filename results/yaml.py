"""Reads texts in YAML, and refuses those that would take too much time or memory; and writes them."""

from io import StringIO
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import Node, ScalarNode

DEPTH = 50  # levels of blocks within blocks
ALIASED = 100_000  # values that all aliases together may stand for; a few lines of aliases of aliases make billions
DIGITS = 100  # digits of an integer
_LONGEST = 400  # letters of a message
_UNDER_WAY = (0, 0)


def parse(text: str) -> Any:
    """Returns what a text in YAML 1.2 holds. Raises ValueError, with a message of one line, if it is not such a text.

    It refuses blocks that are nested more than DEPTH deep, and aliases that stand for more than ALIASED values.
    """
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer, yaml.Constructor = _Composer, _Constructor
    try:
        return yaml.load(text)
    except TypeError:
        raise ValueError("keys must be text; put them in quotes") from None
    except Exception as error:  # the library lets errors of functions such as chr() through
        raise ValueError(_one_line(error)) from error


def as_yaml(value: Any) -> str:
    """Returns plain data as YAML, with the innermost blocks and lists in one line."""
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 100
    text = StringIO()
    yaml.dump(value, text)
    return text.getvalue()


def _one_line(error: Exception) -> str:
    if not isinstance(error, MarkedYAMLError):
        text = " ".join(str(error).split()) or type(error).__name__
    else:
        mark, what = error.problem_mark, ", ".join(part for part in (error.context, error.problem) if part)
        text = f"line {mark.line + 1}, column {mark.column + 1}: {what}" if mark else what
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


class _Composer(Composer):
    """Makes the nodes of a text, where an alias is the node that it stands for, and checks all of them."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self.warn_double_anchors = False  # YAML allows an anchor to be defined again
        self.above = 0  # blocks around the node that is being made

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.above > DEPTH:
            _refuse(self.parser.peek_event(), f"blocks must be nested at most {DEPTH} deep, got more")
        self.above += 1
        node = super().compose_node(parent, index)
        self.above -= 1
        return node

    def get_single_node(self) -> Any:
        root = super().get_single_node()
        if root is not None:
            sizes: dict[Node, tuple[int, int]] = {}
            values, depth = _measure(root, sizes)
            if depth > DEPTH:
                _refuse(
                    root, f"blocks must be nested at most {DEPTH} deep, got {depth} with those that aliases stand for"
                )
            if (extra := values - len(sizes)) > ALIASED:
                _refuse(root, f"aliases must stand for at most {ALIASED:,} values in all, got {extra:.3g}")
        return root


class _Constructor(SafeConstructor):
    """Makes the values of nodes."""

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except YAMLError:
            raise
        except Exception as error:  # such as those of int() and of dict()
            _refuse(node, f"cannot be read as {node.tag.rpartition(':')[2]}: {error}")


def _measure(node: Node, sizes: dict[Node, tuple[int, int]]) -> tuple[int, int]:
    """Returns how many values a node holds, with those that aliases stand for, and how deep they are nested.

    sizes: the results for all nodes that were measured before; this one and those in it are added.
    """
    if node not in sizes:
        if isinstance(node, ScalarNode):
            _require_sound(node)
        sizes[node] = _UNDER_WAY
        children = () if isinstance(node, ScalarNode) else node.value
        pairs = [child if isinstance(child, tuple) else (child,) for child in children]
        inner = [_measure(child, sizes) for pair in pairs for child in pair]
        sizes[node] = 1 + sum(values for values, _ in inner), max((depth + 1 for _, depth in inner), default=0)
    elif sizes[node] is _UNDER_WAY:
        _refuse(node, "must not hold an alias of a block within that block")
    return sizes[node]


def _require_sound(node: ScalarNode) -> None:
    try:
        node.value.encode()
    except UnicodeEncodeError:
        _refuse(node, "must be text that can be written in UTF-8, got half of a surrogate pair")
    if str(node.tag).endswith(":int") and len(node.value) > DIGITS:
        _refuse(node, f"integers must have at most {DIGITS} digits, got {len(node.value)}")


def _refuse(where: Any, problem: str) -> NoReturn:
    """Raises an error at a node or an event."""
    raise ComposerError(None, None, problem, where.start_mark)
