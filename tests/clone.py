from support.clone import *  # noqa: F403
