"""The diagrams of docs/: boxes and arrows on a light card, which reads well on a dark page, too."""

import dataclasses
import html

#: Of a line of text, and of a box with one line.
LINE, BOX = 19, 40
INK, SOFT, CARD = "#1f2933", "#52606d", "#f8fafc"
FILLS = {"user": "#fde9c8", "kubernetes": "#d9e8fb", "bridge": "#d8f0dd", "slurm": "#eadcf7"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A box with its lines of text, the first one bold."""

    x: int
    y: int
    width: int
    fill: str
    lines: tuple[str, ...]

    @property
    def height(self) -> int:
        """All lines and a margin."""
        return BOX + LINE * (len(self.lines) - 1)

    def svg(self) -> str:
        """Drawn."""
        middle = self.x + self.width // 2
        head = f'fill="{INK}" font-weight="600" font-size="15"'
        rest = f'fill="{SOFT}" font-size="13"'
        texts = "".join(
            f'<text x="{middle}" y="{self.y + 25 + LINE * number}" text-anchor="middle" {rest if number else head}>'
            f"{html.escape(line, quote=False)}</text>"
            for number, line in enumerate(self.lines)
        )
        return (
            f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="8" '
            f'fill="{FILLS[self.fill]}" stroke="{SOFT}"/>{texts}'
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """From one point to another; its words stand at `at`, else above its middle."""

    start: tuple[int, int]
    end: tuple[int, int]
    words: str = ""
    at: tuple[int, int] | None = None

    def svg(self) -> str:
        """Drawn."""
        (x1, y1), (x2, y2) = self.start, self.end
        x, y = self.at or ((x1 + x2) // 2, (y1 + y2) // 2 - 7)
        words = (
            f'<text x="{x}" y="{y}" text-anchor="middle" fill="{INK}" font-size="13">{html.escape(self.words)}</text>'
        )
        line = f'<path d="M{x1} {y1} L{x2} {y2}" stroke="{INK}" stroke-width="1.5" marker-end="url(#tip)"/>'
        return line + (words if self.words else "")


def drawing(title: str, width: int, height: int, *parts: Box | Arrow) -> str:
    """A file; the title is read out where the picture is not seen."""
    tip = (
        '<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 L10 5 L0 10 z" fill="{INK}"/></marker>'
    )
    inside = "\n".join(part.svg() for part in parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="system-ui, sans-serif"><title>{html.escape(title)}</title><defs>{tip}</defs>\n'
        f'<rect width="{width}" height="{height}" rx="12" fill="{CARD}"/>\n{inside}\n</svg>\n'
    )


def files() -> dict[str, str]:
    """Every diagram by the name of its file."""
    return {"overview.svg": _overview(), "deployment.svg": _deployment(), "hooks.svg": _hooks(), "gang.svg": _gang()}


def _overview() -> str:
    return drawing(
        "A pod becomes a placeholder job in Slurm, and is bound to the node that Slurm allocates",
        820,
        230,
        Box(x=20, y=60, width=110, fill="user", lines=("kubectl",)),
        Box(x=220, y=50, width=150, fill="kubernetes", lines=("Kubernetes", "API server")),
        Box(x=450, y=50, width=150, fill="bridge", lines=("slurm-bridge", "hooks")),
        Box(x=680, y=50, width=120, fill="slurm", lines=("Slurm", "slurmctld")),
        Arrow(start=(130, 80), end=(220, 80), words="apply"),
        Arrow(start=(370, 68), end=(450, 68), words="1 pending", at=(410, 40)),
        Arrow(start=(600, 68), end=(680, 68), words="2 submit", at=(640, 40)),
        Arrow(start=(680, 92), end=(600, 92), words="3 nodes", at=(640, 130)),
        Arrow(start=(450, 92), end=(370, 92), words="4 bind", at=(410, 130)),
        Box(x=200, y=170, width=190, fill="kubernetes", lines=("kubelet runs the pod",)),
        Arrow(start=(295, 109), end=(295, 170)),
        Box(x=450, y=170, width=350, fill="slurm", lines=("the placeholder job holds its room",)),
        Arrow(start=(740, 109), end=(740, 170)),
        Arrow(start=(390, 190), end=(450, 190), words="5 both end", at=(420, 160)),
    )


def _deployment() -> str:
    return drawing(
        "Where the daemon runs, and which servers it talks to",
        820,
        300,
        Box(x=20, y=30, width=200, fill="kubernetes", lines=("API server", "watches and bindings")),
        Box(
            x=295,
            y=20,
            width=230,
            fill="bridge",
            lines=("slurm-bridge, leader", "namespace slurm-bridge-system", "one of two replicas"),
        ),
        Box(x=600, y=30, width=200, fill="slurm", lines=("slurmrestd", "an operator's token (JWT)")),
        Box(x=295, y=120, width=230, fill="bridge", lines=("slurm-bridge, standby", "takes over by a Lease")),
        Box(x=600, y=130, width=200, fill="slurm", lines=("slurmctld", "decides where and when")),
        Box(x=20, y=130, width=200, fill="kubernetes", lines=("webhook (optional)", "errors at kubectl apply")),
        Box(
            x=170,
            y=230,
            width=480,
            fill="kubernetes",
            lines=("nodes", "a kubelet; with a slurmd, native jobs share the node"),
        ),
        Arrow(start=(295, 60), end=(220, 60), words="HTTPS", at=(260, 52)),
        Arrow(start=(525, 60), end=(600, 60), words="HTTPS", at=(560, 52)),
        Arrow(start=(700, 89), end=(700, 130)),
        Arrow(start=(120, 89), end=(120, 130)),
        Arrow(start=(220, 80), end=(300, 230)),
        Arrow(start=(650, 189), end=(590, 230)),
    )


def _hooks() -> str:
    steps = (
        ("admit", "may it be", "submitted?"),
        ("capacity", "is there room", "in its queue?"),
        ("filter", "which nodes", "never run it?"),
        ("score", "how good are", "the others?"),
        ("subset", "which nodes", "first?"),
        ("commit", "still valid?", "submit"),
    )
    width, gap = 118, 16
    boxes = [
        Box(x=20 + number * (width + gap), y=30, width=width, fill="bridge", lines=lines)
        for number, lines in enumerate(steps)
    ]
    arrows = [Arrow(start=(box.x + width, 69), end=(box.x + width + gap, 69)) for box in boxes[:-1]]
    return drawing(
        "The phases of a hook, from the gate to the commit",
        836,
        240,
        *boxes,
        *arrows,
        Box(x=20, y=170, width=290, fill="user", lines=("Wait or Reject: said on the pod",)),
        Arrow(start=(79, 108), end=(79, 170)),
        Arrow(start=(213, 108), end=(213, 170)),
        Box(x=426, y=170, width=390, fill="slurm", lines=("the job, without the excluded nodes",)),
        Arrow(start=(749, 108), end=(749, 170)),
    )


def _gang() -> str:
    return drawing(
        "The pods of a gang wait together, get one job, and start together",
        820,
        150,
        Box(x=20, y=40, width=170, fill="kubernetes", lines=("4 pods are created", "else GangIncomplete")),
        Box(x=230, y=40, width=170, fill="bridge", lines=("one placeholder", "4 tasks, few nodes")),
        Box(x=440, y=40, width=150, fill="slurm", lines=("Slurm's queue", "nodes for all")),
        Box(x=630, y=40, width=170, fill="kubernetes", lines=("4 pods are bound", "all, or none")),
        Arrow(start=(190, 70), end=(230, 70)),
        Arrow(start=(400, 70), end=(440, 70)),
        Arrow(start=(590, 70), end=(630, 70)),
    )
