"""The page's endpoints as programs call them, in raw HTTP: Gradio's client costs thrice as much."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import httpx

MARKS_OF_A_TRACEBACK = ("Traceback", "Error:", "File ")


class RefusedError(Exception):
    """What an endpoint says instead of an answer."""


class Endpoints:
    """The endpoints of a running page, by name.

    Attributes:
        starts: of each endpoint, its parameters in order, with the values they start with.
    """

    def __init__(self, server: str) -> None:
        self.http = httpx.Client(base_url=f"{server}gradio_api/", timeout=60)
        named = self.http.get("info").json()["named_endpoints"]
        self.starts = {
            name.removeprefix("/"): {
                one["parameter_name"]: one["parameter_default"] for one in endpoint["parameters"]
            }
            for name, endpoint in named.items()
        }

    def __call__(self, name: str, **given: object) -> str:
        """The answer of an endpoint; RefusedError with its words."""
        assert set(given) <= set(self.starts[name]), f"{name} takes no {set(given)}"
        return self.send(name, json.dumps([*{**self.starts[name], **given}.values()]))

    def send(self, name: str, values: str) -> str:
        """The same for a text in place of the JSON list of all values."""
        event = self.post(name, f'{{"data": {values}}}').json()["event_id"]
        told = self.http.get(f"call/{name}/{event}").text
        # Heartbeats may come first.
        kind, data = re.findall(r"^event: (complete|error)\ndata: (.*)$", told, re.M)[-1]
        if kind == "error":
            raise RefusedError(json.loads(data)["error"])
        return json.loads(data)[0]

    def post(self, name: str, body: str) -> httpx.Response:
        return self.http.post(
            f"call/{name}", content=body, headers={"content-type": "application/json"}
        )

    def wrong_refusals(
        self, refused: Mapping[str, tuple[str, Mapping[str, object], str]]
    ) -> dict[str, str]:
        """Of (endpoint, values, words): what is not refused in these words, or not in words."""
        wrong = {}
        for what, (name, given, words) in refused.items():
            try:
                said = f"answered {self(name, **given)}"
            except RefusedError as refusal:
                said = str(refusal)
            marks = [mark for mark in MARKS_OF_A_TRACEBACK if mark in said]
            if words not in said or marks or said != said.strip():  # a cure has a value
                wrong[what] = said[:500]
        return wrong
