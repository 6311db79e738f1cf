"""The hooks that ship with the bridge. They use no door that a site's own hook has not.

Here belongs one module for each hook, with its options. Built-in hooks do not know each other; rules that several
need stand in `hooks/rules`.
"""
