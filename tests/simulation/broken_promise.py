"""The observer's verdict."""


class Broken(BaseException):
    """A promise was broken. No daemon may catch this: it would take the verdict for trouble of its own."""
