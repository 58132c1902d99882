from support.running import *  # noqa: F403
