"""What every test shares: hypothesis draws the same examples each time, unless told to look further.

`make soak` sets FENCEPOST_HYPOTHESIS=random: other examples each time, and ten times as many.
"""

import os
import signal

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("FENCEPOST_HYPOTHESIS", "same"))

# A shell's background jobs ignore Ctrl-C, and so would every program that a test starts and then interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
