from support.study import *  # noqa: F403
