use std::borrow::Cow;
use std::fmt::Write;

/// Replaces an exact text that occurs once, or everywhere when that is asked for. Line ends are taken as the file writes
/// them: a model writes "\n" also for a file with "\r\n".
///
/// # Errors
///
/// A message for the model, when the text is not there, or there more than once.
pub(super) fn replace_exact(
    path: &str,
    content: &str,
    old_text: &str,
    new_text: &str,
    all: bool,
) -> Result<String, String> {
    if old_text.is_empty() {
        return Err("oldText is empty: give the text to replace, or use writeFile for a whole file".to_owned());
    }
    if old_text == new_text {
        return Err("oldText and newText are the same: nothing would change".to_owned());
    }
    let uses_crlf = content.contains("\r\n") && !old_text.contains('\r');
    let as_the_file = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    let (wanted, replacement): (Cow<'_, str>, Cow<'_, str>) = if uses_crlf {
        (as_the_file(old_text).into(), as_the_file(new_text).into())
    } else {
        (old_text.into(), new_text.into())
    };
    let places: Vec<usize> = content.match_indices(&*wanted).map(|(place, _)| place).collect();
    match places.len() {
        0 => Err(not_found(path, content, &wanted)),
        1 => Ok(content.replacen(&*wanted, &replacement, 1)),
        _ if all => Ok(content.replace(&*wanted, &replacement)),
        _ => Err(several_found(path, content, &places)),
    }
}

fn not_found(path: &str, content: &str, wanted: &str) -> String {
    let mut message = format!("oldText does not occur in {path}; it must be the file's own text, to the character. ");
    let first = wanted.lines().map(str::trim).find(|line| !line.is_empty());
    match first.and_then(|line| content.find(line)) {
        Some(near) => {
            let line = line_at(content, near);
            let _ = write!(
                message,
                "Its first line is at line {line}, but what stands around it differs: compare blanks, indentation and \
                the lines that follow."
            );
        }
        None => message.push_str("Read the file again: it may have changed."),
    }
    message
}

fn several_found(path: &str, content: &str, places: &[usize]) -> String {
    let lines: Vec<String> =
        places.iter().take(NAMED_PLACES).map(|place| line_at(content, *place).to_string()).collect();
    let more = if places.len() > NAMED_PLACES { " and others" } else { "" };
    format!(
        "oldText occurs {} times in {path}, at the lines {}{more}: add lines before or after it until it is the only one, \
        or set \"all\" to replace each",
        places.len(),
        lines.join(", ")
    )
}

fn line_at(content: &str, position: usize) -> usize {
    content.bytes().take(position).filter(|byte| *byte == b'\n').count() + 1
}

/// How many places of a text are named in an error.
const NAMED_PLACES: usize = 5;
