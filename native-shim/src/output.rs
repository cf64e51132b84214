//! What commands print. Who has seen enough and closes the pipe, as `head` does, is no trouble, unless what was printed can be had once
//! only.

use std::fmt;
use std::io::{self, Write};

/// Prints a line of an answer on standard output.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    drop(writeln!(io::stdout(), "{line}"));
}

/// Prints a line beside the answer, for people, on standard error.
pub(crate) fn remark(line: fmt::Arguments<'_>) {
    drop(writeln!(io::stderr(), "{line}"));
}

/// Prints what is shown once, such as a token.
///
/// # Errors
///
/// When nobody can have read it.
pub(crate) fn reveal(secret: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{secret}")
}

/// Prints a whole document.
pub(crate) fn print(document: &[u8]) {
    let mut output = io::stdout();
    drop(output.write_all(document).and_then(|()| output.flush()));
}
