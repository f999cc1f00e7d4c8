//! Finds the mistakes in patterns that RabbitMQ's library of regular expressions (PCRE) refuses, with its texts and
//! places.

/// Checks a pattern, and returns it for a library that knows more operators within `[…]`. The error is PCRE's text, and
/// the byte at which PCRE stops reading.
pub(super) fn check(pattern: &str) -> Result<String, (&'static str, usize)> {
    let mut scan = Scan {
        bytes: pattern.as_bytes(),
        at: 0,
        open: 0,
        groups: 0,
        referred: 0,
        escaped: Vec::new(),
        is_repeatable: false,
    };
    while let Some(byte) = scan.peek(0) {
        scan.element(byte)?;
    }
    if scan.open > 0 {
        return Err(("missing )", scan.at));
    }
    if scan.referred > scan.groups {
        return Err(("reference to non-existent subpattern", scan.at));
    }
    let mut text = pattern.to_owned();
    for at in scan.escaped.iter().rev() {
        text.insert(*at, '\\');
    }
    Ok(text)
}

struct Scan<'p> {
    bytes: &'p [u8],
    at: usize,
    /// Groups that are open.
    open: usize,
    /// Groups so far that can be referred to.
    groups: usize,
    /// The highest number of a group that is referred to.
    referred: usize,
    /// The places of characters within `[…]` that would be operators elsewhere.
    escaped: Vec<usize>,
    /// Whether a quantifier may follow.
    is_repeatable: bool,
}

/// The digits of the least and of the greatest number, and the length of the quantifier.
type Counts<'p> = (&'p [u8], Option<&'p [u8]>, usize);

type Checked = Result<(), (&'static str, usize)>;

const NOTHING_TO_REPEAT: &str = "nothing to repeat";
const AT_END: &str = "\\ at end of pattern";
const UNCLOSED_CLASS: &str = "missing terminating ] for character class";
const NAMED_CHARACTER: &str = "PCRE does not support \\L, \\l, \\N{name}, \\U, or \\u";
const SPACE: &str = "\\h, \\H, \\v and \\V are not supported";
const UNKNOWN_FLAG: &str = "unrecognized character after (? or (?-";
const RECURSION: &str = "recursion is not supported";
const UNCLOSED_NAME: &str = "syntax error in subpattern name (missing terminator)";

impl<'p> Scan<'p> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn rest(&self) -> &'p [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn element(&mut self, byte: u8) -> Checked {
        match byte {
            b'\\' => self.escape()?,
            b'[' => self.class()?,
            b'(' => self.group()?,
            b')' => {
                if self.open == 0 {
                    return Err(("unmatched parentheses", self.at));
                }
                self.open -= 1;
                self.at += 1;
                self.is_repeatable = true;
            }
            b'*' | b'+' | b'?' => self.quantifier(1, self.at)?,
            b'{' => match self.counts() {
                None => self.literal(),
                Some(counts) => self.counted(counts)?,
            },
            b'|' | b'^' | b'$' => {
                self.at += 1;
                self.is_repeatable = false;
            }
            _ => self.literal(),
        }
        Ok(())
    }

    fn literal(&mut self) {
        self.at += 1;
        self.is_repeatable = true;
    }

    fn quantifier(&mut self, len: usize, wrong_at: usize) -> Checked {
        if !self.is_repeatable {
            return Err((NOTHING_TO_REPEAT, wrong_at));
        }
        self.at += len;
        // Lazy, or possessive.
        if matches!(self.peek(0), Some(b'?' | b'+')) {
            self.at += 1;
        }
        self.is_repeatable = false;
        Ok(())
    }

    /// The two numbers of a quantifier in braces, and its length; other braces are characters.
    fn counts(&self) -> Option<Counts<'p>> {
        let rest = self.rest();
        let end = rest.iter().position(|byte| *byte == b'}')?;
        let within = &rest[1..end];
        let comma = within.iter().position(|byte| *byte == b',');
        let (from, to) = match comma {
            None => (within, None),
            Some(comma) => (&within[..comma], Some(&within[comma + 1..])),
        };
        let is_number = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
        let is_counted = !from.is_empty() && is_number(from) && to.is_none_or(is_number);
        is_counted.then_some((from, to, end + 1))
    }

    fn counted(&mut self, (from, to, len): Counts<'_>) -> Checked {
        const TOO_BIG: &str = "number too big in {} quantifier";
        let number = |digits: &[u8]| {
            let text = str::from_utf8(digits).unwrap_or_default();
            text.parse::<u16>().ok()
        };
        let last = self.at + len - 1;
        let Some(least) = number(from) else {
            return Err((TOO_BIG, self.at + from.len() + 1));
        };
        if let Some(to) = to.filter(|to| !to.is_empty()) {
            let Some(most) = number(to) else {
                return Err((TOO_BIG, last));
            };
            if most < least {
                return Err(("numbers out of order in {} quantifier", last));
            }
        }
        self.quantifier(len, last)
    }

    fn escape(&mut self) -> Checked {
        let Some(escaped) = self.peek(1) else {
            return Err((AT_END, self.bytes.len()));
        };
        let at = self.at;
        self.at += 2;
        self.is_repeatable = !matches!(escaped, b'b' | b'B' | b'A' | b'z' | b'Z' | b'G' | b'K');
        match escaped {
            b'L' | b'l' | b'U' | b'u' => Err((NAMED_CHARACTER, at + 1)),
            b'N' if self.peek(0) == Some(b'{') => Err((NAMED_CHARACTER, at + 1)),
            b'1'..=b'7' if !self.peek(0).is_some_and(|byte| byte.is_ascii_digit()) => {
                self.referred = self.referred.max(usize::from(escaped - b'0'));
                Ok(())
            }
            b'h' | b'H' | b'v' | b'V' => Err((SPACE, at)),
            b'c' if self.peek(0).is_none() => Err(("\\c at end of pattern", at + 2)),
            b'c' => {
                self.at += 1;
                Ok(())
            }
            b'Q' => {
                let rest = self.rest();
                let end = rest.windows(2).position(|two| two == b"\\E");
                self.at += end.map_or(rest.len(), |end| end + 2);
                Ok(())
            }
            // A property, a number in braces, a name: read as a whole.
            b'p' | b'P' | b'x' | b'o' | b'g' if self.peek(0) == Some(b'{') => {
                self.skip_past(b'}');
                Ok(())
            }
            b'k' if matches!(self.peek(0), Some(b'<' | b'{' | b'\'')) => {
                let close = match self.peek(0) {
                    Some(b'<') => b'>',
                    Some(b'{') => b'}',
                    _ => b'\'',
                };
                self.at += 1;
                self.skip_past(close);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn skip_past(&mut self, close: u8) {
        let found = self.rest().iter().position(|byte| *byte == close);
        self.at += found.map_or(0, |found| found + 1);
    }

    fn class(&mut self) -> Checked {
        const CLASSES: [&str; 14] = [
            "alpha", "lower", "upper", "alnum", "ascii", "blank", "cntrl", "digit", "graph",
            "print", "punct", "space", "word", "xdigit",
        ];
        if self.peek(1) == Some(b':') && self.posix_end().is_some() {
            let text = "POSIX named classes are supported only within a class";
            return Err((text, self.at));
        }
        self.at += 1;
        if self.peek(0) == Some(b'^') {
            self.at += 1;
        }
        let mut previous: Option<u8> = None;
        let mut is_first = true;
        loop {
            let Some(byte) = self.peek(0) else {
                return Err((UNCLOSED_CLASS, self.bytes.len()));
            };
            match byte {
                b']' if !is_first => break,
                b'[' if self.peek(1) == Some(b':') && self.posix_end().is_some() => {
                    let end = self.posix_end().unwrap_or_default();
                    let name = &self.bytes[self.at + 2..end];
                    let name = name.strip_prefix(b"^").unwrap_or(name);
                    if !CLASSES.iter().any(|class| class.as_bytes() == name) {
                        return Err(("unknown POSIX class name", self.at + 2));
                    }
                    self.at = end + 2;
                    previous = None;
                }
                b'\\' => {
                    let Some(escaped) = self.peek(1) else {
                        return Err((AT_END, self.bytes.len()));
                    };
                    self.at += 2;
                    previous = (!escaped.is_ascii_alphanumeric()).then_some(escaped);
                }
                b'-' if previous.is_some() && !matches!(self.peek(1), None | Some(b']')) => {
                    self.at += 1;
                    let (from, to) = (previous.take(), self.peek(0));
                    if to == Some(b'\\') {
                        let kind = self.peek(1);
                        if matches!(kind, Some(b'd' | b'D' | b's' | b'S' | b'w' | b'W')) {
                            return Err(("invalid range in character class", self.at + 1));
                        }
                        continue;
                    }
                    if to.is_some_and(|to| to.is_ascii()) && from > to {
                        return Err(("range out of order in character class", self.at));
                    }
                    if matches!(to, Some(b'[' | b'-' | b'&' | b'~')) {
                        self.escaped.push(self.at);
                    }
                    self.at += 1;
                }
                byte => {
                    if matches!(byte, b'[' | b'-' | b'&' | b'~') {
                        self.escaped.push(self.at);
                    }
                    previous = Some(byte);
                    self.at += 1;
                }
            }
            is_first = false;
        }
        self.at += 1;
        self.is_repeatable = true;
        Ok(())
    }

    /// The place of the `:]` that ends a named class beginning here.
    fn posix_end(&self) -> Option<usize> {
        let rest = self.bytes.get(self.at + 2..)?;
        let is_name = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'^';
        let end = rest.iter().position(|byte| !is_name(byte))?;
        rest[end..].starts_with(b":]").then_some(self.at + 2 + end)
    }

    fn group(&mut self) -> Checked {
        self.is_repeatable = false;
        self.open += 1;
        self.at += 1;
        if self.peek(0) == Some(b'*') {
            // A verb. RabbitMQ knows some of them.
            let name = self.bytes[self.at + 1..].iter();
            let letters = name.take_while(|byte| byte.is_ascii_alphabetic()).count();
            let end = self.at + 1 + letters;
            return Err(("(*VERB) not recognized or malformed", end));
        }
        if self.peek(0) != Some(b'?') {
            self.groups += 1;
            return Ok(());
        }
        self.at += 1;
        match self.peek(0) {
            Some(b':' | b'=' | b'!' | b'>' | b'|') => self.at += 1,
            Some(b'#') => {
                self.open -= 1;
                let end = self.rest().iter().position(|byte| *byte == b')');
                let Some(end) = end else {
                    return Err(("missing ) after comment", self.bytes.len()));
                };
                self.at += end + 1;
            }
            Some(b'<') if matches!(self.peek(1), Some(b'=' | b'!')) => self.at += 2,
            Some(b'<') => self.name(1, b'>')?,
            Some(b'\'') => self.name(1, b'\'')?,
            Some(b'P') => match self.peek(1) {
                Some(b'<') => self.name(2, b'>')?,
                Some(b'=') => self.at += 2,
                Some(b'>') => return Err((RECURSION, self.at)),
                _ => return Err(("unrecognized character after (?P", self.at + 1)),
            },
            Some(b'(') => return Err(("conditions are not supported", self.at)),
            Some(b'R' | b'&' | b'+' | b'0'..=b'9') => return Err((RECURSION, self.at)),
            Some(b'-') if self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) => {
                return Err((RECURSION, self.at));
            }
            Some(b'C') => return Err(("callouts are not supported", self.at)),
            _ => self.flags()?,
        }
        Ok(())
    }

    fn flags(&mut self) -> Checked {
        loop {
            match self.peek(0) {
                Some(b'i' | b'm' | b's' | b'x' | b'J' | b'U' | b'X' | b'-') => self.at += 1,
                Some(b':') => {
                    self.at += 1;
                    return Ok(());
                }
                // The group's own end is read next.
                Some(b')') => return Ok(()),
                _ => return Err((UNKNOWN_FLAG, self.at)),
            }
        }
    }

    fn name(&mut self, skipped: usize, close: u8) -> Checked {
        self.at += skipped;
        let rest = self.rest();
        let len = rest
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_');
        let len = len.count();
        match rest.first() {
            Some(byte) if byte.is_ascii_digit() => {
                return Err(("group name must start with a non-digit", self.at));
            }
            Some(_) if len == 0 && skipped == 1 && close == b'>' => {
                return Err(("unrecognized character after (?<", self.at));
            }
            _ => {}
        }
        self.at += len;
        if self.peek(0) != Some(close) {
            return Err((UNCLOSED_NAME, self.at));
        }
        self.at += 1;
        self.groups += 1;
        Ok(())
    }
}
