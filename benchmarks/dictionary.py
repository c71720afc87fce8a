"""Makes the compression dictionary that tokens are zipped with: `python -m benchmarks.dictionary FILE FOLDER...`

What goes in, all of it free to ship and none of it from the benchmark's states:

- pseudo-sentences from a word chain over English documentation: words and their neighbours, no sentence of the
  original. The shipped file was made from the HTML in Debian 12's packages python3.11-doc (PSF licence),
  postgresql-doc-15 (PostgreSQL licence), sqlite3-doc (public domain) and apache2-doc (Apache 2.0), ten million words;
- words that forms and answers are full of: months, weekdays, countries, currencies, languages, time zones, domains,
  units, states of things, heads of addresses, names of models.

The file is made once and shipped; its SHA-256 is pinned in `journal`. Another dictionary is another token format, so
this script is a record of how the file came to be, and a way to try a new one: it prints size and hash.
"""

from __future__ import annotations

import hashlib
import html
import random
import re
import sys
import zoneinfo
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import zstandard

SIZE = 32 * 1024
SENTENCES = 40_000
SEED = 1
FOREIGN = (".de", ".fr.", ".ja", ".ko", ".tr", ".es", ".zh", ".da", ".pt")

MONTHS = tuple(
    """
January February March April May June July August September October November December
""".split()
)
DAYS = tuple(
    """
Monday Tuesday Wednesday Thursday Friday Saturday Sunday
""".split()
)
COUNTRIES = tuple(
    """
Argentina Australia Austria Belgium Brazil Canada Chile China Colombia Croatia Czechia Denmark Egypt Estonia
Finland France Germany Greece Hungary India Indonesia Ireland Israel Italy Japan Kenya Latvia Lithuania
Luxembourg Malaysia Mexico Morocco Netherlands Nigeria Norway Pakistan Peru Philippines Poland Portugal
Romania Singapore Slovakia Slovenia Spain Sweden Switzerland Thailand Turkey Ukraine Vietnam
""".split()
)
PHRASES = """United States|United Kingdom|New Zealand|South Africa|South Korea|Saudi Arabia|United Arab Emirates|
Street|Avenue|Road|Square|GmbH|Inc.|Ltd.|S.A.|Group|International|Technologies|Solutions|Services|University|Hospital|
.example.com|@example.com|@gmail.com|@outlook.com|@company.com|.co.uk|.org|.net|.io|.dev|.de|.fr|.es|.it|.nl|.eu|
https://www.|https://|http://localhost:|/api/v1/|/users/|/home/|file:///home/|file:///Users/|file:///C:/Users/|.git|
github.com/|claude-|gpt-|gemini-|mistral-|llama-|-sonnet|-opus|-haiku|-mini|-turbo|-latest|endTurn|
pending|approved|rejected|open|closed|resolved|in progress|blocked|draft|active|inactive|enabled|disabled|failed|
success|error|warning|critical|high|medium|low|urgent|normal|none|other|unknown|default|custom|manual|automatic|
production|staging|development|testing|sandbox|preview|europe|north|south|east|west|central|
us-east-|us-west-|eu-west-|eu-central-|eu-north-|ap-southeast-|ap-northeast-|
small|medium|large|standard|premium|basic|professional|enterprise|business|team|free|trial|monthly|yearly|weekly|
daily|hourly|never|always|once|admin|owner|member|viewer|editor|guest|manager|engineer|analyst|director|support|
credit card|bank transfer|invoice|purchase order|EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CAD|AUD|INR|CNY|
English|German|French|Spanish|Italian|Portuguese|Dutch|Polish|Swedish|Japanese|Chinese|Korean|Arabic|
breakfast|vegetarian|vegan|window|aisle|single|double|return|one way|economy|first class|check-in|check-out|
Please |Thank you |Thanks for |I would like to |We need to |Could you |as soon as possible|by the end of the |
because the |according to the |in order to |such as |for example |does not |cannot |should be |has been |will be |
there is a |this is a |it is not |of the |in the |to the |on the |for the |with the |from the |and the |at the |
The following |We recommend |Next steps|Summary|Root cause|Impact|Timeline|Action items|Customer|customers|
update|updated|create|created|delete|deleted|add|added|remove|removed|change|changed|fix|fixed|review|reviewed|
request|response|service|server|client|database|deployment|release|version|configuration|authentication|permission|
performance|latency|timeout|memory|storage|network|cluster|container|pipeline|branch|commit|issue|ticket|report|
account|address|amount|approval|budget|category|comment|company|contact|contract|date|deadline|delivery|department|
description|document|email|employee|expense|meeting|message|name|notes|number|order|owner|payment|phone|priority|
product|project|quantity|reason|reference|region|role|schedule|status|team|title|total|type|user|value""".replace(
    "\n", ""
).split("|")


def paragraphs(folders: list[str]) -> Iterator[list[str]]:
    """The words of each longer English paragraph in the HTML files below the folders, in the order of their names."""
    for file in sorted(str(path) for folder in folders for path in Path(folder).rglob("*.html*")):
        if "apache" in file and any(language in file for language in FOREIGN):
            continue
        text = Path(file).read_text(errors="replace")
        text = re.sub(r"(?s)<(script|style|pre|head)[^>]*>.*?</\1>", " ", text)
        text = html.unescape(re.sub(r"<[^>]+>", " ", text))
        for paragraph in re.split(r"\n\s*\n", text):
            words = re.sub(r"[^A-Za-z0-9 .,;:'()-]+", " ", paragraph).split()
            if len(words) >= 12:
                yield words


def sentences(folders: list[str], chance: random.Random) -> list[bytes]:
    """Pseudo-sentences: each word follows the one before it as it does somewhere in the source."""
    follows: dict[str, list[str]] = defaultdict(list)
    starts: list[str] = []
    for words in paragraphs(folders):
        starts.append(words[0])
        for word, following in pairwise(words):
            follows[word].append(following)
    made: list[bytes] = []
    for _ in range(SENTENCES):
        length = chance.randint(8, 40)
        word = chance.choice(starts)
        row = [word]
        for _ in range(length):
            word = chance.choice(follows.get(word) or starts)
            row.append(word)
        made.append(" ".join(row).encode())
    return made


def tail() -> bytes:
    """What forms and answers are full of. The end of a dictionary is the cheapest to refer to."""
    zones = sorted(
        zone for zone in zoneinfo.available_timezones() if re.match(r"(Europe|America|Asia|Australia)/[A-Z]", zone)
    )
    spread = zones[:: max(1, len(zones) // 60)]
    words = [*spread, *COUNTRIES, *DAYS, *MONTHS, *(month[:3] for month in MONTHS), *PHRASES]
    return " ".join(dict.fromkeys(words)).encode() + b" 2024-01-01T00:00:00Z 2025-01- 2026-01-15 2027-"


def make(folders: list[str]) -> bytes:
    """The dictionary: zstandard's trained part with the tail appended to its content."""
    samples = sentences(folders, random.Random(SEED))
    trained = zstandard.train_dictionary(SIZE, samples, k=64, d=8, level=4)
    return trained.as_bytes() + tail()


def main() -> None:
    """Write the file named on the command line."""
    target, *folders = sys.argv[1:]
    data = make(folders)
    Path(target).write_bytes(data)
    print(f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    main()
