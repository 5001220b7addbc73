"""Loss curves as an SVG picture."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 360, 56, 56, 16, 44  # pixels; the last four are margins
FONT = 'font-family="system-ui, sans-serif"'


@dataclass(frozen=True)
class Curve:
    name: str
    values: list[float]
    colour: str
    stroke: float  # its width: one curve lies on the other, and both are to be seen


def svg(title: str, remark: str, curves: list[Curve]) -> str:
    """The value at each step, from 1 on."""
    steps = max(len(curve.values) for curve in curves)
    top = max(max(curve.values) for curve in curves)
    bottom = min(min(curve.values) for curve in curves)
    bottom, top = int(bottom), int(top) + 1

    def x(step: float) -> float:
        return LEFT + (step - 1) / max(steps - 1, 1) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return TOP + (top - value) / (top - bottom) * (HEIGHT - TOP - BOTTOM)

    lines = [_text(12, 20, title, "start", 14), _text(12, 36, remark, "start", 10)]
    for value in range(bottom, top + 1):
        lines.append(f'<line x1="{LEFT}" y1="{y(value):.1f}" x2="{WIDTH - RIGHT}" y2="{y(value):.1f}" stroke="#ddd"/>')
        lines.append(_text(LEFT - 8, y(value) + 4, str(value), "end", 11))
    for step in sorted({1, *range(steps // 4, steps + 1, max(steps // 4, 1))}):
        lines.append(_text(x(step), HEIGHT - BOTTOM + 18, str(step), "middle", 11))
    lines.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "step", "middle", 11))
    for row, curve in enumerate(curves):
        points = " ".join(f"{x(step):.1f},{y(value):.2f}" for step, value in enumerate(curve.values, 1))
        style = f'fill="none" stroke="{curve.colour}" stroke-width="{curve.stroke}" stroke-linejoin="round"'
        lines.append(f'<polyline points="{points}" {style}/>')
        height = TOP + 20 + 18 * row
        lines.append(f'<line x1="{WIDTH - 330}" y1="{height - 4}" x2="{WIDTH - 306}" y2="{height - 4}" {style}/>')
        lines.append(_text(WIDTH - 298, height, curve.name, "start", 12))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *lines, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, anchor: str, size: int) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" {FONT}>{escape(text)}</text>'
