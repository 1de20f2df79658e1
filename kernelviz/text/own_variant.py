"""The file with which a user's own kernel becomes a variant of an op, and the command that starts the pages with it."""

from collections.abc import Sequence

FILE = "mykernel.py"
START = f"KERNELVIZ_PLUGINS={FILE} streamlit run app.py"


def variant_file(op: str, inputs: Sequence[str]) -> str:
    """A Python file with one variant of the op, in which the user replaces the call.

    >>> print(variant_file("add", ["x_N", "y_N"]))
    # mykernel.py
    from kernelviz.ops import variant
    from my_package import my_function  # your kernel
    <BLANKLINE>
    <BLANKLINE>
    @variant(op="add", backend="torch")
    def my_kernel(x_N, y_N):
        \"\"\"What it does, in one line.\"\"\"
        # Allocate and compile here: this is not timed.
    <BLANKLINE>
        def launch():
            return my_function(x_N, y_N)  # this call is timed
    <BLANKLINE>
        return launch
    """
    arguments = ", ".join(inputs)
    return (
        f"# {FILE}\n"
        "from kernelviz.ops import variant\n"
        "from my_package import my_function  # your kernel\n\n\n"
        f'@variant(op="{op}", backend="torch")\n'
        f"def my_kernel({arguments}):\n"
        '    """What it does, in one line."""\n'
        "    # Allocate and compile here: this is not timed.\n\n"
        "    def launch():\n"
        f"        return my_function({arguments})  # this call is timed\n\n"
        "    return launch"
    )


def command(op: str) -> str:
    """The command that measures the variant in a terminal.

    >>> command("add")
    'kernelviz run add --with mykernel.py'
    """
    return f"kernelviz run {op} --with {FILE}"
