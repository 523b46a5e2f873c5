"""Admission: how much work may be in flight, and which work next. Imports numpy, so it is imported where it is used.

`admission` is the set of hosts and what goes out next, `brake` how many at once, `second_tries` how often again,
`floor` what renewals leave to others; `calendar`, `line` and `columns` are what they are kept in; `spread` says when
renewals and retries come, `settings` what all go by.
"""

from fencepost.core.admission.admission import Admission
from fencepost.core.admission.settings import AdmissionSettings
from fencepost.core.admission.spread import back_off, first_renewal, next_renewal, phase

__all__ = ["Admission", "AdmissionSettings", "back_off", "first_renewal", "next_renewal", "phase"]
