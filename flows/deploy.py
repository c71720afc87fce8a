"""Deploy a service: what will change is worked out between the questions, and production wants its name typed."""

from enum import Enum

from pydantic import BaseModel

from mrtr_flow import Declined, Flow, StepError, ask, confirm, current, flow, step


class Environment(Enum):
    STAGING = "staging"
    PRODUCTION = "production"


class Plan(BaseModel):
    release: str
    changes: int
    migrations: list[str]


class Deployment(BaseModel):
    service: str
    environment: Environment
    release: str
    url: str


def plan(service: str, version: str, environment: Environment) -> Plan:
    """What the deployment would do. Public: the client is told it anyway."""
    migrations = ["0042_add_invoice_index"] if environment is Environment.PRODUCTION else []
    return Plan(release=f"{service}-{version}", changes=17, migrations=migrations)


def roll_out(service: str, environment: Environment, made: Plan) -> Deployment:
    """The deploy API dedupes on the key, so a round that is sent again does not deploy twice."""
    url = f"https://{environment.value}.example.com/{service}?run={current().idempotency_key[:8]}"
    return Deployment(service=service, environment=environment, release=made.release, url=url)


@flow(
    annotations={"destructiveHint": True},
    examples={"service": "billing", "version": "4.2.0", "environment": "production", "typed": ["biling", "billing"]},
)
def deploy(service: str, version: str) -> Flow[Deployment | str]:
    """Deploy a version of a service to an environment the person chooses."""
    environment = yield from ask(f"Where should {service} {version} go?", Environment, key="environment")
    made = yield from step(plan, service, version, environment).options(public=True)
    what = f"{made.changes} changes and {len(made.migrations)} migrations"
    try:
        if environment is Environment.PRODUCTION:
            message = f"{what} go to production. Type the service's name to go on."
            while (yield from ask(message, str, key="typed")) != service:
                message = f"That is not {service!r}. Type it, or decline."
        elif not (yield from confirm(f"{what} go to staging. Deploy?")):
            return "Nothing was deployed"
        return (yield from step(roll_out, service, environment, made))
    except Declined:
        return "Nothing was deployed"
    except StepError as error:
        return f"The rollout failed: {error.type}"
