"""What programs print on the terminal."""

from contract.terminal import err, out


def test_text_is_printed_as_it_is(capsys):
    line = f"topic a:key:b [red]c[/] {'d' * 200}"
    out.print(line)
    err.print(line)
    assert capsys.readouterr() == (f"{line}\n", f"{line}\n")
