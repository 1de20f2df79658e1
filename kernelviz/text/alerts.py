"""Alerts of the monitor in text."""

from kernelviz.core import Device, units
from kernelviz.metrics.alerts import AlertState, Thresholds
from kernelviz.text.text import Text

_BURST = (
    ". A burst run keeps the device idle on purpose (before a problem, and between batches of calls that draw much power), so "
    "that its clock stays high; the utilisation of a sustained run should be well above your threshold"
)


def describe_alerts(device: Device, state: AlertState, thresholds: Thresholds) -> list[Text]:
    """A sentence for each threshold that is passed, for page and terminal."""
    alerts = []
    if state.too_idle:
        alerts.append(
            f"{device.name} was busy {units.percent(state.busy_fraction, 0)} of the last 30 s while a run was in progress, "
            f"below the alert's {units.percent(thresholds.least_busy_fraction, 0)}{_BURST if device.kind == 'cuda' else ''}."
        )
    if state.growing:
        alerts.append(
            f"Memory in use on {device.name} grew by {units.size_bytes(state.growth_bytes)} within the last ten minutes, "
            f"more than the alert's {units.size_bytes(thresholds.most_growth_bytes)}."
        )
    return [Text(alert) for alert in alerts]
