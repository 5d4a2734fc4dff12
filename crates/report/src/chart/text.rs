//! How wide a text will be, without the font: estimates that err on the wide side.

/// Pixels that `text` takes at most at `size` pixels in the usual sans-serif faces.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

fn advance(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | '\u{2009}' | 'I' => 0.35,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.0,
        'A'..='Z' => 0.76,
        c if c.is_ascii() => 0.64,
        _ => 0.9,
    }
}

/// `text`, ended with an ellipsis if it is wider than `room`.
pub(crate) fn cut(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.into();
    }
    let mut used = size;
    let kept: String = text
        .chars()
        .take_while(|c| {
            used += advance(*c) * size;
            used <= room
        })
        .collect();
    format!("{}…", kept.trim_end())
}

/// `text` in lines of at most `room` pixels, broken at blanks; a longer word is cut.
pub(crate) fn wrapped(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(word, size) + size * 0.35 <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(cut(word, size, room)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_cuts_stay_within_their_room() {
        let text = "A rather long heading that no chart could hold in a single line";
        let lines = wrapped(text, 14.0, 200.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line, 14.0) <= 200.0));
        assert_eq!(lines.join(" "), text);
        let short = cut(text, 12.0, 80.0);
        assert!(short.ends_with('…') && width(&short, 12.0) <= 92.0);
    }
}
