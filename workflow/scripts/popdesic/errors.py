"""The one exception whose text is meant for the person who runs the workflow."""


class UserError(Exception):
    """An error the user can cause.

    Its text is one sentence that names file, row (line) and value and says the way out.
    """
