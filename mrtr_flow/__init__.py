"""Write a multi-question MCP tool as one function; each round can land on another server."""

from mrtr_flow.context import current
from mrtr_flow.definition import Definition, flow
from mrtr_flow.effects import Effect, Flow
from mrtr_flow.elicitation import ask, ask_url, confirm
from mrtr_flow.errors import (
    Cancelled,
    CapabilityMissing,
    Declined,
    DefinitionError,
    EffectMisused,
    FlowDiverged,
    FlowError,
    LimitExceeded,
    NotAnswered,
    NotRecordable,
    StepError,
)
from mrtr_flow.questions import gather
from mrtr_flow.reply import Reply
from mrtr_flow.roots import Root, list_roots
from mrtr_flow.sampling import Sampled, sample
from mrtr_flow.steps import step

__all__ = (
    "Cancelled",
    "CapabilityMissing",
    "Declined",
    "Definition",
    "DefinitionError",
    "Effect",
    "EffectMisused",
    "Flow",
    "FlowDiverged",
    "FlowError",
    "LimitExceeded",
    "NotAnswered",
    "NotRecordable",
    "Reply",
    "Root",
    "Sampled",
    "StepError",
    "ask",
    "ask_url",
    "confirm",
    "current",
    "flow",
    "gather",
    "list_roots",
    "sample",
    "step",
)
