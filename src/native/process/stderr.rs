use std::collections::VecDeque;

/// The end of a server's error output: what an error tells about a server that died.
#[derive(Debug, Default)]
pub(super) struct Tail {
    lines: VecDeque<String>,
    bytes: usize,
}

impl Tail {
    pub(super) fn push(&mut self, line: &str) {
        self.bytes += line.len() + 1;
        self.lines.push_back(line.to_owned());
        while self.lines.len() > TAIL_LINES || self.bytes > TAIL_BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.len() + 1;
        }
    }

    pub(super) fn into_text(self) -> String {
        Vec::from(self.lines).join("\n")
    }
}

/// Cuts error output into lines. A line longer than [`LINE_BYTES`] is cut into several.
#[derive(Debug, Default)]
pub(super) struct ErrorLines(Vec<u8>);

impl ErrorLines {
    pub(super) fn push(&mut self, bytes: &[u8], lines: &mut Vec<String>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            for part in piece.chunks(LINE_BYTES) {
                self.0.extend_from_slice(part);
                if self.0.ends_with(b"\n") || self.0.len() >= LINE_BYTES {
                    lines.extend(self.finish());
                }
            }
        }
    }

    pub(super) fn finish(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.0);
        let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
        (!text.is_empty()).then_some(text)
    }
}

/// A stack trace of the usual length.
const TAIL_LINES: usize = 40;
const TAIL_BYTES: usize = 16 * 1024;

/// As much of one line as a person reads.
const LINE_BYTES: usize = 4 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let mut tail = Tail::default();
        for number in 0..1000 {
            tail.push(&format!("line {number}"));
        }
        let text = tail.into_text();
        assert!(text.starts_with("line 960\n") && text.ends_with("\nline 999"), "{text}");

        let mut tail = Tail::default();
        (0..30).for_each(|_| tail.push(&"x".repeat(LINE_BYTES)));
        assert!(tail.into_text().len() <= TAIL_BYTES);
    }

    #[test]
    fn long_lines_are_cut() {
        let (mut output, mut lines) = (ErrorLines::default(), Vec::new());
        output.push(&vec![b'x'; 3 * LINE_BYTES + 1], &mut lines);
        assert_eq!(lines.len(), 3);
        output.push(b"y\r\n\n", &mut lines);
        assert_eq!(lines.last().map(String::as_str), Some("xy"));
        assert_eq!(output.finish(), None);
    }
}
