"""Write a multi-question MCP tool as one function; each round can land on another server."""

from mrtr_flow.context import current
from mrtr_flow.definition import Definition, flow
from mrtr_flow.effects import Effect, Flow
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
from mrtr_flow.questions import ask, confirm, gather
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
    "StepError",
    "ask",
    "confirm",
    "current",
    "flow",
    "gather",
    "step",
)
