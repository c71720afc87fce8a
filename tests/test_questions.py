"""What a question may say, and what is an answer to it: held against the protocol's schema on both sides."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

import anyio
import pytest

from mrtr_flow import DefinitionError, Flow, Sampled, ask, ask_url, confirm, flow, gather, list_roots, sample
from mrtr_flow.adapters.jsonrpc import JsonRpcServer
from tests.helpers import KEYS, Clock, tester

SECRET = "PATIENT HAS DIABETES"

ASKING: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("a completion as a message", lambda said, _: confirm(said)),
    ("a completion as messages", lambda said, _: sample(said, max_tokens=5)),
    ("a completion as a type", lambda said, _: ask("?", said)),
    ("a text as a type", lambda said, _: ask("?", said.text)),
    ("a completion as a key", lambda said, _: confirm("?", key=said)),
    ("a long text as a key", lambda said, _: ask("?", str, key=said.text * 9, attempts=0)),
    ("a number as attempts", lambda _, number: ask("?", str, attempts=number)),
    ("a text as attempts", lambda said, _: ask("?", str, attempts=said.text)),
    ("a number as max_tokens", lambda _, number: sample("?", max_tokens=number)),
    ("a text as a tool choice", lambda said, _: sample("?", max_tokens=5, tool_choice=said.text)),
    ("a text as a context", lambda said, _: sample("?", max_tokens=5, include_context=said.text)),
    ("a text as a name in metadata", lambda said, _: sample("?", max_tokens=5, metadata={said.text: float("nan")})),
    ("a text in a query", lambda said, _: ask_url("?", f"https://h/?q={said.text}")),
    ("a number in a query", lambda _, number: ask_url("?", f"https://h:x/?q={number}")),
    ("a completion as a page", lambda said, _: ask_url("?", said)),
    ("a completion in a gather", lambda said, _: gather(confirm("?"), said)),
]


@pytest.mark.parametrize("asking", [asking for _, asking in ASKING], ids=[name for name, _ in ASKING])
def test_an_answer_given_for_a_wrong_parameter_is_in_no_log(
    asking: Callable[[Any, Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    @flow
    def careless() -> Flow[str]:
        said, number = yield from gather(sample("Findings?", max_tokens=99), ask("How many?", int))
        yield from asking(said, number)
        return "asked"

    caplog.set_level("INFO")
    t = tester(careless).start().answer(sample=SECRET, ask=-1234567)
    assert isinstance(t.failure.cause, DefinitionError)
    told = caplog.text + t.failure.text + str(t.failure.cause)
    assert "PATIENT" not in told
    assert "1234567" not in told


def test_the_text_for_a_wrong_parameter_names_its_type_and_the_remedy() -> None:
    given: Any = Sampled((), "m", "assistant", None)
    with pytest.raises(DefinitionError, match=r"message of confirm\('sure'\) is of type Sampled, not text; give the"):
        _ = confirm(given, key="sure")
    with pytest.raises(DefinitionError, match=r"max_tokens of sample is a value of type int .*; give a whole number"):
        _ = sample("?", max_tokens=0)
    with pytest.raises(DefinitionError, match="key <80 characters> twice"):
        _ = gather(ask("?", str, key="k" * 80), ask("?", str, key="k" * 80))


@pytest.mark.parametrize("attempts", [True, False, 0, 16, 1.0, "3", None])
def test_attempts_are_a_whole_number_from_1_to_15(attempts: Any) -> None:
    with pytest.raises(DefinitionError, match="attempts of"):
        _ = ask("?", str, attempts=attempts)


# ---------------------------------------------------------------------- answers of a model


@flow
def talk() -> Flow[str]:
    """Ask a model, and then a person."""
    said = yield from sample("Say.", max_tokens=9, key="say")
    return f"{said.text}{len(said.tool_uses)} {(yield from ask('Fine?', str))}"


def call(answer: Any, state: str | None, name: str = "talk") -> dict[str, Any]:
    """What the server answers to an entry `say`, over JSON text both ways."""
    prefix = "io.modelcontextprotocol/"
    capabilities: dict[str, Any] = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
    params: dict[str, Any] = {
        "name": name,
        "arguments": {},
        "_meta": {prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": capabilities},
    }
    if state is not None:
        params |= {"requestState": state, "inputResponses": {"say": answer}}
    server = JsonRpcServer([talk, look], name="test", keys=KEYS, clock=Clock())
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answered: dict[str, Any] = json.loads(json.dumps(anyio.run(server.handle, json.loads(json.dumps(message)))))
    return answered


def said(content: Any, **members: Any) -> dict[str, Any]:
    return {"role": "assistant", "model": "m", "content": content, **members}


TEXT = {"type": "text", "text": "Hm."}
USE: dict[str, Any] = {"type": "tool_use", "id": "u1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "toolUseId": "u1", "content": [TEXT]}


@pytest.mark.parametrize(
    "answer",
    [
        said({"type": "tool_use", "id": None, "name": 5, "input": "str"}),
        said([USE, {**USE, "id": 5}]),
        said({**USE, "input": []}),
        said({"type": "image", "data": 5, "mimeType": None}),
        said({"type": "image", "data": "aGk="}),
        said({"type": "audio", "mimeType": "audio/wav"}),
        said({"type": "video"}),
        said({"type": 5}),
        said({"type": "text"}),
        said({"type": "text", "text": None}),
        said([TEXT, {"type": "text", "text": 5}]),
        said({**TEXT, "annotations": {"priority": 7}}),
        said({**TEXT, "_meta": "x"}),
        said({"type": "tool_result", "toolUseId": "u1"}),
        said({**RESULT, "toolUseId": 5}),
        said({**RESULT, "content": [{"type": "text"}]}),
        said({**RESULT, "content": [{"type": "resource", "resource": {"uri": "a:b"}}]}),
        said([TEXT, None]),
        said("Hm."),
        said(None),
        said(TEXT, stopReason=5),
        said(TEXT, role="system"),
        said(TEXT, model=None),
    ],
    ids=json.dumps,
)
def test_a_completion_that_breaks_the_schema_is_invalid_params_and_the_run_goes_on(answer: Any) -> None:
    state = call(None, None)["result"]["requestState"]
    assert call(answer, state)["error"]["code"] == -32602
    assert "ask" in call(said(TEXT), state)["result"]["inputRequests"]


@pytest.mark.parametrize(
    "answer",
    [
        said(TEXT),
        said([]),
        said([TEXT, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]),
        said([TEXT, USE], stopReason="toolUse"),
        said({**TEXT, "annotations": {"audience": ["user"], "priority": 1}, "_meta": {"a": 1}, "own": 1}),
        said({**TEXT, "annotations": None}, stopReason=None),
        said(TEXT, role="user", stopReason="of the client's own"),
    ],
    ids=json.dumps,
)
def test_a_completion_of_the_schema_is_taken(answer: Any) -> None:
    state = call(None, None)["result"]["requestState"]
    assert "ask" in call(answer, state)["result"]["inputRequests"]


@pytest.mark.parametrize(
    "answer",
    [said(RESULT), said([RESULT, TEXT]), said(RESULT, role="user"), said([USE, USE]), said(USE, role="user")],
    ids=json.dumps,
)
def test_a_completion_no_conversation_can_go_on_with_is_asked_for_again(answer: Any) -> None:
    asked = call(answer, call(None, None)["result"]["requestState"])["result"]
    assert list(asked["inputRequests"]) == ["say"]
    assert asked["inputRequests"]["say"]["method"] == "sampling/createMessage"


def test_an_answer_of_another_kind_is_asked_for_again_whatever_else_it_holds() -> None:
    state = call(None, None)["result"]["requestState"]
    others: list[Any] = [{"action": "decline"}, {"roots": []}, said({"type": "text"}, action="accept")]
    for answer in others:
        assert list(call(answer, state)["result"]["inputRequests"]) == ["say"]


@flow
def look() -> Flow[str]:
    """Ask for the client's roots."""
    return str(len((yield from list_roots(key="say"))))


@pytest.mark.parametrize("root", [{"uri": 5}, {"uri": "file:///a", "name": 5}, {"name": "a"}, "file:///a"])
def test_a_root_that_breaks_the_schema_is_invalid_params(root: Any) -> None:
    state = call(None, None, "look")["result"]["requestState"]
    assert call({"roots": [root]}, state, "look")["error"]["code"] == -32602


def test_what_a_model_said_can_be_said_in_the_next_sample() -> None:
    @flow
    def loop() -> Flow[str]:
        question: dict[str, Any] = {"role": "user", "content": "Weather?"}
        tools = [{"name": "look", "inputSchema": {"type": "object"}}]
        first = yield from sample([question], max_tokens=9, tools=tools)
        results = [{**RESULT, "toolUseId": use["id"]} for use in first.tool_uses]
        turns = [question, {"role": first.role, "content": list(first.content)}, {"role": "user", "content": results}]
        return (yield from sample(turns, max_tokens=9, tools=tools)).text

    t = tester(loop).start().answer(said([TEXT, USE, {**USE, "id": "5"}]))
    assert t.answer("Rain").result == "Rain"


# ---------------------------------------------------------------------- parameters of sample


REFUSED: dict[str, list[Any]] = {
    "max_tokens": [None, True, 0, 5.0, "5"],
    "system_prompt": [5, ["a"]],
    "temperature": ["hot", True, [1]],
    "stop_sequences": ["END", [5], ["a", None], {"a": 1}, 5],
    "include_context": ["all", "thisserver", 5],
    "metadata": [[], "x"],
    "tool_choice": ["any", {"mode": "auto"}],
    "tools": ["look", [{}], [{"name": "look"}], [{"name": "look", "inputSchema": {"type": "string"}}]],
    "model_preferences": [
        {"costPriority": 7},
        {"speedPriority": -0.1},
        {"intelligencePriority": True},
        {"hints": ["fast"]},
        [],
        "fast",
    ],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values])
def test_a_parameter_the_protocol_does_not_allow_is_refused_where_it_is_given(name: str, value: Any) -> None:
    given: dict[str, Any] = {"max_tokens": 5, name: value}
    with pytest.raises(DefinitionError, match=f"{name} of sample is"):
        _ = sample("?", **given)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_a_parameter_that_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(DefinitionError, match="parameters of sample are not JSON"):
        _ = sample("?", max_tokens=5, temperature=value)
    with pytest.raises(DefinitionError, match="parameters of sample are not JSON"):
        _ = sample("?", max_tokens=5, metadata={"a": value})


def test_parameters_nested_without_end_are_refused() -> None:
    circle: dict[str, Any] = {}
    circle["a"] = circle
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for metadata in (circle, {"a": deep}):
        with pytest.raises(DefinitionError, match="parameters of sample are not JSON"):
            _ = sample("?", max_tokens=5, metadata=metadata)


def test_every_parameter_of_the_protocol_is_sent() -> None:
    tools = ({"name": "look", "inputSchema": {"type": "object"}},)

    @flow
    def full() -> Flow[str]:
        preferences = {"hints": [{"name": "fast"}], "costPriority": 0, "speedPriority": 1.0, "own": 5}
        answer = yield from sample(
            ({"role": "user", "content": "Hi"},),
            max_tokens=5,
            system_prompt="",
            temperature=0,
            stop_sequences=("END",),
            model_preferences=preferences,
            include_context="none",
            metadata={},
            tools=tools,
            tool_choice="required",
        )
        return answer.text

    (asked,) = tester(full).start().asked.values()
    assert asked.params == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
        "maxTokens": 5,
        "systemPrompt": "",
        "temperature": 0,
        "stopSequences": ["END"],
        "modelPreferences": {
            "hints": [{"name": "fast"}],
            "costPriority": 0,
            "speedPriority": 1.0,
            "own": 5,
        },
        "includeContext": "none",
        "metadata": {},
        "tools": [{"name": "look", "inputSchema": {"type": "object"}}],
        "toolChoice": {"mode": "required"},
    }


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        5,
        {"role": "user", "content": "Hi"},
        ["Hi"],
        [{"role": "system", "content": "Hi"}],
        [{"role": "user"}],
        [user({"type": "image", "data": 5, "mimeType": "image/png"})],
        [user({"type": "text"})],
        [user({"type": "video"})],
        [user(USE), user(RESULT)],
        [assistant(USE), assistant(RESULT)],
        [assistant(USE)],
        [assistant(USE), user(TEXT)],
        [assistant(USE), user(RESULT, TEXT)],
        [assistant(USE), user(RESULT, RESULT)],
        [assistant(USE, USE), user(RESULT, RESULT)],
        [assistant({**USE, "id": 5}, USE), user(RESULT, {**RESULT, "toolUseId": 5})],
        [assistant(USE), user({**RESULT, "content": "Rain"})],
        [user(RESULT)],
    ],
    ids=json.dumps,
)
def test_messages_the_protocol_does_not_allow_are_refused(messages: Any) -> None:
    with pytest.raises(DefinitionError, match="of sample"):
        _ = sample(messages, max_tokens=5)


# ---------------------------------------------------------------------- pages, and choices


@pytest.mark.parametrize(
    "url",
    [
        "https://h/\nfoo",
        "https://h/\tfoo",
        "https://h/foo\n",
        "https://h/a b",
        "https://h/\x7f",
        "https://h/é",
        "https://h/%zz",
        "https://h/\\x",
        "https://h:99999999/",
        "https://h:port/",
        "https://:80/",
        "http://h/<x>",
        "https://[::1",
        "https://",
        "",
        5,
        None,
        b"https://h/",
    ],
)
def test_a_page_has_only_what_a_web_address_has(url: Any) -> None:
    with pytest.raises(DefinitionError, match="url of url"):
        _ = ask_url("Open", url)


@pytest.mark.parametrize("url", ["https://[::1]:8080/a?b=%20&c[]=1#d", "http://h", "HTTPS://h/~a/(b);c=1,2'*!$@:+"])
def test_every_character_of_an_address_can_be_in_a_page(url: str) -> None:
    @flow
    def page() -> Flow[str]:
        yield from ask_url("Open", url)
        return "opened"

    (asked,) = tester(page).start().asked.values()
    assert asked.params["url"] == url


def test_a_whole_number_stands_for_the_choice_of_its_text_however_it_is_sent() -> None:
    @flow
    def rate() -> Flow[str]:
        return (yield from ask("Stars?", Literal["1", "5"]))

    for sent in ("5", 5, 5.0):
        assert tester(rate).start().answer(sent).result == "5"
    for sent in (5.5, True, float(2)):
        assert "(The last answer was not taken: choose one of 1, 5.)" in tester(rate).start().answer(sent).message
