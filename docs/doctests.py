"""For the API reference: examples in docstrings (`>>>`) become blocks of code, which Markdown would take for quotes.

So does the code that a module's docstring shows. Nothing is run here: pytest runs the examples.
"""

import re
from typing import Any

from griffe import Extension, GriffeLoader, Object

__all__ = ["Doctests"]

# Lines from a prompt to the next empty one, or lines from an import at the margin to the end.
_EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"^(?:from|import) .*\Z", re.MULTILINE | re.DOTALL)


class Doctests(Extension):
    """Puts fences around code."""

    def on_object(self, *, obj: Object, loader: GriffeLoader, **_: Any) -> None:  # noqa: ARG002 (the interface's)
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    r"""A docstring with its code in fences.

    >>> fenced("A sum:\n\n>>> 1 + 1\n2")
    'A sum:\n\n```pycon\n>>> 1 + 1\n2\n```'
    """
    text = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
    return _CODE.sub(lambda found: f"```python\n{found[0]}\n```", text)
